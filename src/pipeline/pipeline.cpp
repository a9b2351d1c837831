#include "meshpost/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/fork.hpp"
#include "base/thread.hpp"
#include "copy/job/state.hpp"
#include "meshpost/device/backend.hpp"
#include "pipeline/board.hpp"
#include "pipeline/crossing.hpp"
#include "pipeline/distribution.hpp"
#include "pipeline/options.hpp"
#include "pipeline/relay.hpp"
#include "pipeline/room.hpp"

namespace meshpost {
namespace {

using pipelining::Board;
using pipelining::Distribution;
using pipelining::FarBuffer;
using pipelining::LegExecutor;
using pipelining::mover_between;
using pipelining::Relay;
using pipelining::Ticket;

using Clock = std::chrono::steady_clock;

}  // namespace

struct Pipeline::State {
  explicit State(PipelineOptions wanted);
  PipelineResult run(PipelineRun const& how);
  /// A chunk's place in a buffer; null: the user's memory. In another process's buffer, an address
  /// that stands for it.
  char* slot(u32 buffer, u64 chunk) const;
  bool has(u32 buffer) const { return distribution_.buffers[buffer] == group_.number(); }

 private:
  // State of one run, shared by its threads.
  struct Run {
    Run(PipelineRun const& wanted, Schedule const& schedule)
        : how(wanted),
          board(schedule.legs.size(), schedule.shape.depth, schedule.shape.chunks),
          legs(times_of_legs(wanted, schedule)) {}
    static std::vector<StepTime> times_of_legs(PipelineRun const& how, Schedule const& schedule);

    PipelineRun how;
    Clock::time_point start;
    Board board;
    std::mutex asking;  // held while the user's function gives segments
    std::atomic<u64> bytes{0};
    std::vector<StepTime> legs;  // each written by one thread, read when all have ended
  };

  void make();
  Allocation make_buffer(u32 buffer, Bytes size) const;
  void expose_buffers();
  bool runs(u32 leg) const { return distribution_.runners[leg] == group_.number(); }
  void pass_all_together(Run& run);
  void pass_one_at_a_time(Run& run);
  bool step(Run& run, u32 leg, u64 chunk);
  void pass_all(Run& run, u32 leg);
  void fail(Run& run, std::string const& where);
  auto const& carrier(u32 leg) const { return pipelining::carrier(options, schedule, leg); }
  void check_room() const;
  void agree_on_end(Run const& run, bool failed_elsewhere) const;
  Ticket put_work(u32 leg, u64 chunk);
  Ticket put_move(Run& run, u32 leg, u64 chunk);
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
  ProcessGroup const alone_;
  ProcessGroup const& group_ = options.job ? options.job->state().group : alone_;
  Distribution distribution_;
  std::vector<Allocation> memories_;    // one for each buffer
  std::vector<FarBuffer> far_;          // the same; for buffers that others copy from or to
  std::vector<LegExecutor> executors_;  // one for each leg
  std::optional<Relay> relay_;
};

Pipeline::State::State(PipelineOptions wanted) : options(std::move(wanted)) {
  group_.together("make " + pipelining::describe(options), [&] { make(); });
  expose_buffers();
  relay_.emplace(options.job, group_, schedule, distribution_);
}

void Pipeline::State::make() {
  schedule = make_schedule(pipelining::shape_of(options));
  pipelining::check(options, group_.number(), group_.count());
  schedule.shape.chunks = pipelining::chunks_of(options);
  static_cast<void>(schedule.size());  // throws if there are too many
  distribution_ = pipelining::distribute(schedule, pipelining::processes_of(options));
  pipelining::check_carriers(options, schedule, distribution_);
  Bytes const size{options.chunk * options.item * options.depth};
  far_.resize(schedule.buffers.size());
  for (u32 buffer = 0; buffer < schedule.buffers.size(); ++buffer) {
    memories_.push_back(make_buffer(buffer, size));
    buffer_bytes.value += memories_[buffer].size();
    if (!has(buffer)) far_[buffer].addresses = pipelining::Addresses(size);
  }
  for (u32 leg = 0; leg < schedule.legs.size(); ++leg) {
    auto const& from = options.levels[schedule.buffers[leg].level];
    auto const& to = options.levels[schedule.buffers[leg + 1].level];
    bool const moves = schedule.legs[leg].stage != Stage::comp;
    bool const asks = options.segments_between_buffers || schedule.buffers[leg].users ||
                      schedule.buffers[leg + 1].users;
    if (moves && asks && runs(leg)) pipelining::check_segments_function(options);
    if (!runs(leg) || distribution_.crosses(leg) || (moves && carrier(leg)))
      executors_.emplace_back(nullptr);
    else if (moves) executors_.emplace_back(mover_between(from, to));
    else
      executors_.emplace_back(compute_at(schedule.legs[leg].level).on_stream ? to.device : nullptr);
  }
}

// Keeps the exception that is being handled, if it is the first.
void Pipeline::State::fail(Run& run, std::string const& where) {
  if (!run.board.fail(where)) return;
  relay_->tell_failure();
  if (!options.failed) return;
  try {
    run.board.rethrow_if_failed();
  } catch (Error const& error) {
    options.failed(error);
  }
}

Allocation Pipeline::State::make_buffer(u32 buffer, Bytes size) const {
  if (schedule.buffers[buffer].users || !has(buffer)) return {};
  auto const& level = options.levels[schedule.buffers[buffer].level];
  if (distribution_.exposed(buffer) && level.memory == MemoryKind::pageable)
    return options.job->allocate(size);
  if (distribution_.exposed(buffer) && level.memory == MemoryKind::device)
    return options.job->allocate(*level.device, size);
  return level.device->allocate(size, level.memory);
}

void Pipeline::State::expose_buffers() {
  for (u32 buffer = 0; buffer < schedule.buffers.size(); ++buffer) {
    if (!distribution_.exposed(buffer)) continue;
    auto& far = far_[buffer];
    far.process = distribution_.buffers[buffer];
    far.memory = options.job->expose(memories_[buffer].data(), memories_[buffer].size(),
                                     fmt::format("buffer {} of a pipeline", buffer));
  }
}

char* Pipeline::State::slot(u32 buffer, u64 chunk) const {
  if (schedule.buffers[buffer].users) return nullptr;
  char* const begin = has(buffer) ? memories_[buffer].as<char>() : far_[buffer].addresses.begin();
  return begin + schedule.slot(chunk) * options.chunk * options.item;
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
  pipelining::check_segments(segments, move);
  for (auto const& one : segments) run.bytes += one.size;
  if (auto const& carry = carrier(leg)) {
    carry(segments);
    return {};
  }
  if (!distribution_.crosses(leg)) return executors_[leg].copy(segments);
  if (has(leg)) pipelining::put(far_[leg + 1], segments);
  else pipelining::get(far_[leg], segments);
  return {};
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
    compute.on_stream(work, executors_[leg].stream());
  } else {
    compute.start(work);
    if (compute.sync) compute.sync(work);
  }
  return executors_[leg].end();
}

// Does one leg of one chunk, or puts it on its stream, after the steps that it waits for in the
// schedule. False if the run has failed.
bool Pipeline::State::step(Run& run, u32 leg, u64 chunk) {
  auto& executor = executors_[leg];
  try {
    // The lane itself is in order. A lane that works ahead waits for its own end of some chunks
    // ago. So no stream holds more than a few chunks' work, and a lost device is detected soon.
    if (executor.ahead() && chunk >= run.board.kept()) {
      auto const old = run.board.get(leg, chunk - run.board.kept());
      if (!old) return false;
      old->wait();
    }
    for (u64 const before : schedule.step(schedule.number(chunk, leg, false)).after) {
      auto const one = schedule.step(before);
      if (one.stage != Stage::sync) continue;
      auto const end = run.board.get(one.leg, one.chunk);
      if (!end) return false;
      executor.after(*end);
    }
    auto* const times = run.how.timed ? &run.legs[chunk * schedule.legs.size() + leg] : nullptr;
    if (times) executor.stamp(&times->begin, run.start);
    auto end =
        schedule.legs[leg].stage == Stage::comp ? put_work(leg, chunk) : put_move(run, leg, chunk);
    if (times) {
      executor.stamp(&times->end, run.start);
      if (executor.ahead()) end.event = executor.end().event;
    }
    bool const awaited = relay_->is_awaited(leg);
    if (run.how.one_at_a_time || awaited) end.wait();
    run.board.post(leg, chunk, std::move(end));
    if (awaited) relay_->tell(leg, chunk);
    return true;
  } catch (...) {
    fail(run, name(leg, chunk));
    return false;
  }
}

void Pipeline::State::pass_all(Run& run, u32 leg) {
  for (u64 chunk = 0; chunk < schedule.shape.chunks; ++chunk)
    if (!step(run, leg, chunk)) return;
}

void Pipeline::State::pass_all_together(Run& run) {
  std::vector<std::thread> threads;
  try {
    threads.reserve(schedule.legs.size());
    for (u32 leg = 0; leg < schedule.legs.size(); ++leg)
      if (runs(leg))
        threads.push_back(
            start_thread("run a leg of a pipeline", [this, &run, leg] { pass_all(run, leg); }));
  } catch (...) {
    fail(run, "run a pipeline");  // the existing ones don't wait for the rest
  }
  for (auto& thread : threads) thread.join();
}

void Pipeline::State::pass_one_at_a_time(Run& run) {
  auto const legs = static_cast<u32>(schedule.legs.size());
  for (u64 chunk = 0; chunk < schedule.shape.chunks; ++chunk)
    for (u32 leg = 0; leg < legs; ++leg) {
      if (!runs(leg)) continue;
      // The step before it, perhaps of another process.
      bool const first = chunk == 0 && leg == 0;
      if (!first && !run.board.get(leg > 0 ? leg - 1 : legs - 1, leg > 0 ? chunk : chunk - 1))
        return;
      if (!step(run, leg, chunk)) return;
    }
}

std::vector<StepTime> Pipeline::State::Run::times_of_legs(PipelineRun const& how,
                                                          Schedule const& schedule) {
  if (!how.timed) return {};
  return pipelining::make_list<StepTime>("run a pipeline", schedule.size() / 2, "times of legs",
                                         "run it without PipelineRun::timed, or in larger chunks");
}

// Checks the room for the lists that a run always keeps.
void Pipeline::State::check_room() const {
  auto const kept = Board::kept(options.depth, schedule.shape.chunks);
  pipelining::check_room("run a pipeline", schedule.legs.size() * kept, sizeof(Ticket),
                         "ends of legs that are kept", "use fewer levels, or a smaller depth");
}

PipelineResult Pipeline::State::run(PipelineRun const& how) {
  refuse_after_fork("run a pipeline");
  if (inside_kernel())
    throw Error(Kind::misuse, "run a pipeline", "a kernel called it", "call it from the host");
  // Until all are here, no process may copy into another's buffers, or tell others about its
  // progress. After that no process may leave before the others agree on the end: they would wait
  // for it.
  std::optional<Run> made;
  group_.together(how.one_at_a_time ? "run a pipeline, one leg at a time" : "run a pipeline", [&] {
    check_room();
    made.emplace(how, schedule);
  });
  auto& run = *made;
  run.start = Clock::now();
  // The number differs from that of any earlier run, of this pipeline or another. So late notices
  // can be told from this run's.
  u64 const number = options.job ? options.job->state().next_number() : 0;
  try {
    relay_->start(run.board, number, how.one_at_a_time);
    if (how.one_at_a_time) pass_one_at_a_time(run);
    else if (schedule.shape.chunks > 0) pass_all_together(run);
  } catch (...) {
    fail(run, "run a pipeline");
  }
  bool const failed_elsewhere = relay_->stop();  // before the board is cleared
  // All threads have ended. This is needed after a failure, too: nothing may touch the buffers, or
  // the caller's memory, once this returns.
  for (auto const& end : run.board.take()) try {
      end.wait();
    } catch (...) {
      fail(run, "end a pipeline");
    }
  for (auto& executor : executors_) try {
      if (executor.ahead()) executor.stream().synchronize();
    } catch (...) {
      fail(run, "end a pipeline");
    }
  agree_on_end(run, failed_elsewhere);
  double const seconds = std::chrono::duration<double>(Clock::now() - run.start).count();
  PipelineResult result{seconds, run.bytes, {}, std::move(run.legs)};
  auto const legs = schedule.legs.size();
  if (how.timed) result.busy.assign(legs, 0);
  for (u64 i = 0; i < result.legs.size(); ++i)
    result.busy[i % legs] += result.legs[i].end - result.legs[i].begin;
  return result;
}

// All processes throw the error of the first process in which something failed by itself.
void Pipeline::State::agree_on_end(Run const& run, bool failed_elsewhere) const {
  std::optional<Error> mine;
  try {
    run.board.rethrow_if_failed();
  } catch (Error const& error) {
    mine = error;
  }
  group_.agree("end a run of a pipeline", failed_elsewhere ? std::nullopt : mine);
  if (mine) throw Error(*mine);
}

Pipeline::Pipeline(PipelineOptions options) {
  refuse_after_fork("make a pipeline");
  state_ = std::make_unique<State>(std::move(options));
}
Pipeline::~Pipeline() { leave_to_parent(state_); }
PipelineResult Pipeline::run(PipelineRun const& how) { return state_->run(how); }
Schedule const& Pipeline::schedule() const { return state_->schedule; }
Bytes Pipeline::buffer_bytes() const { return state_->buffer_bytes; }
void* Pipeline::buffer(u32 number) const {
  if (number >= state_->schedule.buffers.size())
    throw Error(Kind::bad_argument, "ask for a buffer of a pipeline",
                fmt::format("buffer {} of {}", number, state_->schedule.buffers.size()),
                "they are numbered as in schedule().buffers");
  return state_->has(number) ? state_->slot(number, 0) : nullptr;
}

}  // namespace meshpost
