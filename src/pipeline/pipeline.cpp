#include "meshpost/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "meshpost/device/backend.hpp"
#include "pipeline/board.hpp"

namespace meshpost {
namespace {

using pipelining::Board;
using pipelining::Lane;
using pipelining::mover_between;
using pipelining::Ticket;

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
  ScheduleShape shape{
      static_cast<u32>(options.levels.size()), 0, options.depth, {}, options.reverse, options.back};
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
  // One run's: what its threads share.
  struct Run {
    PipelineRun how;
    Clock::time_point start;
    Board board;
    std::mutex asking;  // held while the user's function gives segments
    std::atomic<u64> bytes{0};
    std::vector<StepTime> legs{};  // each written by one thread, read when all have ended
  };

  bool step(Run& run, u32 leg, u64 chunk);
  void pass_all(Run& run, u32 leg);
  Ticket put_work(u32 leg, u64 chunk);
  Ticket put_move(Run& run, u32 leg, u64 chunk);
  void check_segments(std::vector<Segment> const& segments, ChunkMove const& move) const;
  Compute const& compute_at(u32 level) const {
    return *std::find_if(options.compute.begin(), options.compute.end(),
                         [&](Compute const& one) { return one.level == level; });
  }
  std::string name(u32 leg, u64 chunk) const {
    return fmt::format("{} of chunk {}", to_string(schedule.legs[leg]), chunk);
  }

 public:
  PipelineOptions options;
  Schedule schedule;
  Bytes buffer_bytes{};

 private:
  std::vector<Allocation> memories_;  // one a buffer
  std::vector<Lane> lanes_;           // one a leg
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
    if (schedule.legs[leg].stage != Stage::comp) lanes_.emplace_back(mover_between(from, to));
    else lanes_.emplace_back(compute_at(schedule.legs[leg].level).on_stream ? to.device : nullptr);
  }
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

Ticket Pipeline::State::put_move(Run& run, u32 leg, u64 chunk) {
  u64 const first = chunk * options.chunk, count = std::min(options.chunk, options.items - first);
  ChunkMove const move{schedule.legs[leg].stage,
                       schedule.legs[leg].level,
                       chunk,
                       first,
                       count,
                       slot(leg + 1, chunk),
                       slot(leg, chunk),
                       Bytes{count * options.item}};
  std::vector<Segment> segments;
  if (move.target && move.source && !options.segments_between_buffers) {
    segments = {move.whole()};
  } else {
    std::scoped_lock const lock(run.asking);
    segments = options.segments(move);
  }
  check_segments(segments, move);
  for (auto const& one : segments) run.bytes += one.size;
  return lanes_[leg].copy(segments);
}

Ticket Pipeline::State::put_work(u32 leg, u64 chunk) {
  u64 const first = chunk * options.chunk, count = std::min(options.chunk, options.items - first);
  u32 const level = schedule.legs[leg].level;
  ChunkWork const work{level,
                       chunk,
                       first,
                       count,
                       slot(leg, chunk),
                       slot(leg + 1, chunk),
                       Bytes{count * options.item}};
  auto const& compute = compute_at(level);
  if (compute.on_stream) {
    compute.on_stream(work, lanes_[leg].stream());
  } else {
    compute.start(work);
    if (compute.sync) compute.sync(work);
  }
  return lanes_[leg].end();
}

// Does one leg of one chunk, or puts it on its stream, after what the schedule says it waits for.
// False if the run has failed.
bool Pipeline::State::step(Run& run, u32 leg, u64 chunk) {
  auto& lane = lanes_[leg];
  try {
    // The lane itself is in order. So that no stream holds more than a few chunks' work, and a lost
    // device is found out soon, a lane that works ahead waits for its own end of some chunks ago.
    if (lane.ahead() && chunk >= run.board.kept()) {
      auto const old = run.board.get(leg, chunk - run.board.kept());
      if (!old) return false;
      old->wait();
    }
    for (u64 const before : schedule.step(schedule.number(chunk, leg, false)).after) {
      auto const one = schedule.step(before);
      if (one.stage != Stage::sync) continue;
      auto const end = run.board.get(one.leg, one.chunk);
      if (!end) return false;
      lane.after(*end);
    }
    auto* const times = run.how.timed ? &run.legs[chunk * schedule.legs.size() + leg] : nullptr;
    if (times) lane.stamp(&times->begin, run.start);
    auto end =
        schedule.legs[leg].stage == Stage::comp ? put_work(leg, chunk) : put_move(run, leg, chunk);
    if (times) {
      lane.stamp(&times->end, run.start);
      if (lane.ahead()) end.event = lane.end().event;
    }
    if (run.how.one_at_a_time) end.wait();
    run.board.post(leg, chunk, std::move(end));
    return true;
  } catch (...) {
    run.board.fail(name(leg, chunk));
    return false;
  }
}

void Pipeline::State::pass_all(Run& run, u32 leg) {
  for (u64 chunk = 0; chunk < schedule.shape.chunks; ++chunk)
    if (!step(run, leg, chunk)) return;
}

PipelineResult Pipeline::State::run(PipelineRun const& how) {
  if (inside_kernel())
    throw Error(Kind::misuse, "run a pipeline", "a kernel called it", "call it from the host");
  auto const legs = static_cast<u32>(schedule.legs.size());
  Run run{how, Clock::now(), {legs, options.depth}, {}};
  if (how.timed) run.legs.resize(schedule.shape.chunks * legs);
  if (how.one_at_a_time) {
    bool going = true;
    for (u64 chunk = 0; chunk < schedule.shape.chunks; ++chunk)
      for (u32 leg = 0; leg < legs && going; ++leg) going = step(run, leg, chunk);
  } else if (schedule.shape.chunks > 0) {
    std::vector<std::jthread> threads;
    try {
      for (u32 leg = 0; leg < legs; ++leg)
        threads.emplace_back([this, &run, leg] { pass_all(run, leg); });
    } catch (...) {
      run.board.fail("start the threads of a pipeline");  // those there are don't wait for the rest
    }
  }  // all threads have ended
  // Also after a failure: nothing may touch the buffers, or the caller's memory, once this returns.
  for (auto const& end : run.board.take()) try {
      end.wait();
    } catch (...) {
      run.board.fail("end a pipeline");
    }
  for (auto& lane : lanes_) try {
      if (lane.ahead()) lane.stream().synchronize();
    } catch (...) {
      run.board.fail("end a pipeline");
    }
  double const seconds = std::chrono::duration<double>(Clock::now() - run.start).count();
  run.board.rethrow_if_failed();
  PipelineResult result{seconds, run.bytes, {}, std::move(run.legs)};
  if (how.timed) result.busy.assign(legs, 0);
  for (u64 i = 0; i < result.legs.size(); ++i)
    result.busy[i % legs] += result.legs[i].end - result.legs[i].begin;
  return result;
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
