#include "meshpost/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "meshpost/device/backend.hpp"
#include "pipeline/lane.hpp"

namespace meshpost {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(std::string cause, std::string remedy) {
  throw Error(Kind::bad_argument, "make a pipeline", std::move(cause), std::move(remedy));
}

void check(PipelineOptions const& options) {
  for (u32 i = 0; i < options.levels.size(); ++i)
    if (!options.levels[i].device)
      refuse(fmt::format("level {} has no device", i),
             "name one, a CPU device for memory of the host");
  if (options.chunk == 0) refuse("chunks of 0 items", "let a chunk have 1 item or more");
  if (options.item == 0) refuse("items of 0 bytes", "say how many bytes an item has");
  if (options.chunk > ~u64{0} / options.item / options.depth / 2)
    refuse(fmt::format("{} items of {} bytes in a chunk", options.chunk, options.item.value),
           "use smaller chunks");
  if (!options.segments && options.levels.size() > 1)
    refuse("no function gives the segments of a chunk", "set PipelineOptions::segments");
  for (auto const& compute : options.compute)
    if (!compute.on_stream == !compute.start)
      refuse(fmt::format("level {} has {}", compute.level,
                         compute.start ? "two functions to compute" : "nothing to compute"),
             "give either on_stream or start");
}

u64 chunks_of(PipelineOptions const& options) {
  return options.items / options.chunk + (options.items % options.chunk != 0 ? 1 : 0);
}

ScheduleShape shape_of(PipelineOptions const& options) {
  ScheduleShape shape{static_cast<u32>(options.levels.size()), 0, options.depth, {},
                      options.reverse, options.back};
  for (auto const& compute : options.compute) shape.compute.push_back(compute.level);
  return shape;
}

}  // namespace

struct Pipeline::State {
  explicit State(PipelineOptions wanted);
  PipelineResult run(PipelineRun const& how);

  /// Where a chunk is in a buffer; null: the user's memory.
  char* slot(u32 buffer, u64 chunk) const;

 private:
  void issue(u32 leg, u64 chunk);
  void put_work(u32 leg, u64 chunk);
  void put_move(u32 leg, u64 chunk);
  void check_segments(std::vector<Segment> const& segments, ChunkMove const& move) const;
  std::string name(u32 leg, u64 chunk) const {
    return fmt::format("{} of chunk {}", to_string(schedule.legs[leg]), chunk);
  }
  /// The end of a leg of a chunk that is not older than `kept` chunks.
  std::shared_ptr<Event>& end_of(u32 leg, u64 chunk) {
    return ends_[(chunk % kept_) * schedule.legs.size() + leg];
  }
  void wait_for(u32 leg, u64 chunk);

 public:
  PipelineOptions options;
  Schedule schedule;
  Bytes buffer_bytes{};

 private:
  Failure failure_;                   // outlives the lanes, whose threads use it
  std::vector<Allocation> memories_;  // one a buffer
  std::vector<Lane> lanes_;           // one a leg
  u64 kept_;                          // chunks under way at most
  std::vector<std::shared_ptr<Event>> ends_;
  PipelineRun how_;
  Clock::time_point start_;
  PipelineResult result_;
};

Pipeline::State::State(PipelineOptions wanted) : options(std::move(wanted)) {
  schedule = make_schedule(shape_of(options));
  check(options);
  schedule.shape.chunks = chunks_of(options);
  Bytes const size{options.chunk * options.item * options.depth};
  for (auto const& buffer : schedule.buffers) {
    auto const& level = options.levels[buffer.level];
    memories_.push_back(buffer.users ? Allocation{} : level.device->allocate(size, level.memory));
    buffer_bytes.value += buffer.users ? 0 : size.value;
  }
  for (u32 leg = 0; leg < schedule.legs.size(); ++leg) {
    auto const& from = options.levels[schedule.buffers[leg].level];
    auto const& to = options.levels[schedule.buffers[leg + 1].level];
    auto mover = mover_between(from, to);
    if (schedule.legs[leg].stage == Stage::comp) {
      auto const& compute = *std::find_if(
          options.compute.begin(), options.compute.end(),
          [&](Compute const& one) { return one.level == schedule.legs[leg].level; });
      mover = compute.on_stream ? to.device : nullptr;
    }
    lanes_.emplace_back(mover, failure_);
  }
  // Enough to keep every slot of every buffer full, and no more: what fails is found out soon.
  kept_ = u64{options.depth} * schedule.buffers.size() + 1;
  ends_.resize(kept_ * schedule.legs.size());
}

char* Pipeline::State::slot(u32 buffer, u64 chunk) const {
  if (schedule.buffers[buffer].users) return nullptr;
  return memories_[buffer].as<char>() + schedule.slot(chunk) * options.chunk * options.item;
}

void Pipeline::State::check_segments(std::vector<Segment> const& segments,
                                     ChunkMove const& move) const {
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

void Pipeline::State::put_move(u32 leg, u64 chunk) {
  u64 const first = chunk * options.chunk, count = std::min(options.chunk, options.items - first);
  ChunkMove const move{schedule.legs[leg].stage, schedule.legs[leg].level, chunk,
                       first,                    count,                    slot(leg + 1, chunk),
                       slot(leg, chunk),         Bytes{count * options.item}};
  bool const between_buffers = move.target && move.source;
  auto segments = between_buffers && !options.segments_between_buffers
                      ? std::vector<Segment>{move.whole()}
                      : options.segments(move);
  check_segments(segments, move);
  for (auto const& one : segments) result_.bytes += one.size;
  lanes_[leg].copy(std::move(segments), name(leg, chunk));
}

void Pipeline::State::put_work(u32 leg, u64 chunk) {
  u64 const first = chunk * options.chunk, count = std::min(options.chunk, options.items - first);
  u32 const level = schedule.legs[leg].level;
  ChunkWork const work{level, chunk, first, count, slot(leg, chunk), slot(leg + 1, chunk),
                       Bytes{count * options.item}};
  auto const& compute = *std::find_if(options.compute.begin(), options.compute.end(),
                                      [&](Compute const& one) { return one.level == level; });
  if (compute.on_stream) {
    compute.on_stream(work, lanes_[leg].stream());
    return;
  }
  lanes_[leg].on_thread(name(leg, chunk), [work, &compute] {
    compute.start(work);
    if (compute.sync) compute.sync(work);
  });
}

// The schedule's dependencies become events: data there, buffer free; a lane is in order by itself.
void Pipeline::State::issue(u32 leg, u64 chunk) {
  auto& lane = lanes_[leg];
  for (u64 const before : schedule.step(schedule.number(chunk, leg, false)).after) {
    auto const one = schedule.step(before);
    if (one.stage == Stage::sync) lane.hold(end_of(one.leg, one.chunk), name(one.leg, one.chunk));
  }
  auto* const times = how_.timed ? &result_.legs[chunk * schedule.legs.size() + leg] : nullptr;
  if (times) lane.stamp(&times->begin, start_);
  schedule.legs[leg].stage == Stage::comp ? put_work(leg, chunk) : put_move(leg, chunk);
  if (times) lane.stamp(&times->end, start_);
  end_of(leg, chunk) = lane.mark();
}

void Pipeline::State::wait_for(u32 leg, u64 chunk) {
  try {
    end_of(leg, chunk)->wait();
  } catch (...) {
    failure_.note(name(leg, chunk));
  }
}

PipelineResult Pipeline::State::run(PipelineRun const& how) {
  if (inside_kernel())
    throw Error(Kind::misuse, "run a pipeline", "a kernel called it", "call it from the host");
  auto const legs = static_cast<u32>(schedule.legs.size());
  failure_.clear();
  how_ = how;
  result_ = {};
  if (how.timed) result_.legs.resize(schedule.shape.chunks * legs);
  start_ = Clock::now();
  for (u64 chunk = 0; chunk < schedule.shape.chunks && !failure_.any(); ++chunk) {
    if (chunk >= kept_) wait_for(legs - 1, chunk - kept_);
    for (u32 leg = 0; leg < legs && !failure_.any(); ++leg) {
      try {
        issue(leg, chunk);
        if (how.one_at_a_time) wait_for(leg, chunk);
      } catch (...) {
        failure_.note(name(leg, chunk));
      }
    }
  }
  // Also after a failure: nothing may touch the buffers, or the caller's memory, once this returns.
  for (auto& lane : lanes_) lane.drain();
  result_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  std::fill(ends_.begin(), ends_.end(), nullptr);
  failure_.rethrow_if_any();
  if (how.timed) result_.busy.assign(legs, 0);
  for (u64 i = 0; i < result_.legs.size(); ++i)
    result_.busy[i % legs] += result_.legs[i].end - result_.legs[i].begin;
  return std::move(result_);
}

Pipeline::Pipeline(PipelineOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Pipeline::~Pipeline() = default;
PipelineResult Pipeline::run(PipelineRun const& how) { return state_->run(how); }
Schedule const& Pipeline::schedule() const { return state_->schedule; }
Bytes Pipeline::buffer_bytes() const { return state_->buffer_bytes; }
void* Pipeline::buffer(u32 number) const {
  if (number >= state_->schedule.buffers.size())
    throw Error(Kind::bad_argument, "ask for a buffer of a pipeline",
                fmt::format("buffer {} of {}", number, state_->schedule.buffers.size()),
                "they are numbered as in schedule().buffers");
  return state_->slot(number, 0);
}

}  // namespace meshpost
