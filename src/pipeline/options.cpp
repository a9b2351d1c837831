#include "pipeline/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "meshpost/base/error.hpp"

namespace meshpost::pipelining {
namespace {

[[noreturn]] void refuse(std::string cause, std::string remedy) {
  throw Error(Kind::bad_argument, "make a pipeline", std::move(cause), std::move(remedy));
}

}  // namespace

void check(PipelineOptions const& options, u32 process, u32 processes) {
  for (u32 i = 0; i < options.levels.size(); ++i) {
    auto const& level = options.levels[i];
    if (level.process >= processes)
      refuse(fmt::format("level {} is of process {}; there are {}", i, level.process, processes),
             options.job ? "processes count from 0" : "set PipelineOptions::job");
    if (level.process == process && !level.device)
      refuse(fmt::format("level {} has no device", i),
             "name one, a CPU device for memory of the host");
  }
  if (options.chunk == 0) refuse("chunks of 0 items", "let a chunk have 1 item or more");
  if (options.item == 0) refuse("items of 0 bytes", "give the bytes of an item");
  if (options.chunk > ~u64{0} / options.item / options.depth / 2)
    refuse(fmt::format("{} items of {} bytes in a chunk", options.chunk, options.item.value),
           "use smaller chunks");
  for (auto const& compute : options.compute)
    if (options.levels[compute.level].process == process && !compute.on_stream == !compute.start)
      refuse(fmt::format("level {} has {}", compute.level,
                         compute.start ? "two functions to compute" : "nothing to compute"),
             "give either on_stream or start");
}

Carrier const& carrier(PipelineOptions const& options, Schedule const& schedule, u32 leg) {
  auto const& to = options.levels[schedule.buffers[leg + 1].level];
  return to.carry ? to.carry : options.levels[schedule.buffers[leg].level].carry;
}

void check_carriers(PipelineOptions const& options, Schedule const& schedule,
                    Distribution const& distribution) {
  for (auto const& buffer : schedule.buffers)
    if (!buffer.users && options.levels[buffer.level].carry)
      refuse(
          fmt::format("level {} has a function to carry pieces, but chunks rest in a buffer there",
                      buffer.level),
          "give carry only to the level where the data are, or stay");
  for (u32 leg = 0; leg < schedule.legs.size(); ++leg)
    if (carrier(options, schedule, leg) && distribution.crosses(leg))
      refuse(fmt::format("level {} is joined to another process's level by carry",
                         schedule.legs[leg].level),
             "let the level next to one with carry be of the same process");
}

void check_segments_function(PipelineOptions const& options) {
  if (!options.segments)
    refuse("no function gives the segments of a chunk", "set PipelineOptions::segments");
}

u64 chunks_of(PipelineOptions const& options) {
  return options.items / options.chunk + (options.items % options.chunk != 0 ? 1 : 0);
}

ScheduleShape shape_of(PipelineOptions const& options) {
  ScheduleShape shape{
      static_cast<u32>(options.levels.size()), 0, options.depth, {}, options.reverse, options.back};
  for (auto const& compute : options.compute) shape.compute.push_back(compute.level);
  return shape;
}

std::vector<u32> processes_of(PipelineOptions const& options) {
  std::vector<u32> all;
  all.reserve(options.levels.size());
  for (auto const& level : options.levels) all.push_back(level.process);
  return all;
}

std::string describe(PipelineOptions const& options) {
  std::vector<u32> compute;
  compute.reserve(options.compute.size());
  for (auto const& one : options.compute) compute.push_back(one.level);
  return fmt::format(
      "a pipeline of levels in processes {}, {} items of {} bytes, {} at a time, depth {}, {}{}, "
      "computing at levels {}",
      fmt::join(processes_of(options), " "), options.items, options.item.value, options.chunk,
      options.depth, options.reverse ? "in reverse" : "forward", options.back ? " and back" : "",
      fmt::join(compute, " "));
}

void check_segments(std::vector<Segment> const& segments, ChunkMove const& move) {
  auto const check_side = [&](void const* buffer, void const* pointer, Bytes size,
                              std::string_view side, std::size_t i) {
    if (!buffer) return;
    // As numbers: pointers into different objects can't be compared.
    auto const begin = reinterpret_cast<u64>(buffer), at = reinterpret_cast<u64>(pointer);
    if (at >= begin && size <= move.size && at - begin <= move.size - size) return;
    throw Error(Kind::bad_argument, "segments",
                fmt::format("the {} of segment {}, {} bytes at offset {}, is outside the chunk's "
                            "buffer of {} bytes",
                            side, i, size.value, static_cast<i64>(at - begin), move.size.value),
                "let segments lie within the buffer that the function is given");
  };
  for (std::size_t i = 0; i < segments.size(); ++i) {
    auto const& [target, source, size] = segments[i];
    if (size == 0) continue;
    if (!target || !source)
      throw Error(Kind::bad_argument, "segments",
                  fmt::format("segment {} of {} bytes has a null {}", i, size.value,
                              target ? "source" : "target"),
                  "name the place of the chunk in your memory");
    check_side(move.target, target, size, "target", i);
    check_side(move.source, source, size, "source", i);
  }
}

}  // namespace meshpost::pipelining
