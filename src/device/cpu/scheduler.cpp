#include "device/cpu/scheduler.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "base/caught.hpp"
#include "base/cores.hpp"
#include "base/pause.hpp"

namespace meshpost::cpu {
namespace {

// Of this worker; written by it, read by its fibers.
thread_local std::atomic<Fiber*> running = nullptr;

// A rank of one thread is a whole program, and may keep arrays on its stack. If ranks have many
// threads, there are tens of thousands of these. Only touched pages cost memory.
constexpr std::size_t stack_of_rank = 512 * 1024;
constexpr std::size_t stack_of_thread = 64 * 1024;

// Gives the core away. Returns true if another thread computed on it meanwhile. After a mere yield
// this thread waits for the other one's whole time slice, some milliseconds. A thread that sleeps
// gets the core when it wakes up.
bool core_is_wanted() {
  constexpr u64 long_turn = 500'000;  // ns
  u64 const begin = memory::clock_ns();
  sched_yield();
  return memory::clock_ns() - begin > long_turn;
}

// To sleep and be woken takes about this long. In shorter runs the host polls.
constexpr auto short_run = std::chrono::microseconds(100);

u64 load_bits_relaxed(void const* word, WordType type) {
  auto const load = []<class T>(T* from) {
    return u64{std::atomic_ref(*from).load(std::memory_order_relaxed)};
  };
  return width(type) == 4 ? load(static_cast<u32*>(const_cast<void*>(word)))
                          : load(static_cast<u64*>(const_cast<void*>(word)));
}

}  // namespace

FiberView* current_fiber() { return running.load(std::memory_order_relaxed); }

u32 CpuLaunch::poison() const {
  return std::atomic_ref(spec_.grids.front().control->poison).load(std::memory_order_relaxed);
}

void CpuLaunch::record_fault(Fiber& fiber, Subject subject, Fault fault, u64 a, u64 b, u64 c,
                             char const* text) {
  RankReport& report = fiber.rank->report();
  if (std::atomic_ref(report.state).load(std::memory_order_relaxed) ==
      static_cast<u32>(RankState::failed))
    return;
  report.subject = subject;
  report.fault = fault;
  report.details[0] = a;
  report.details[1] = b;
  report.details[2] = c;
  copy_text(report.text, sizeof report.text, text);
  store_state(report, RankState::failed);
  // All CPU devices of a launch obey the first grid's word. So the host need not have seen the
  // fault yet.
  std::atomic_ref(spec_.grids.front().control->poison)
      .fetch_or(Control::leave, std::memory_order_relaxed);
  resources_.wake_host();
}

// Not checked, since it never returns: each use of the fiber would leave a call on the sanitizer's
// stack.
void CpuLaunch::fiber_body(void* argument) {
  auto& fiber = *static_cast<Fiber*>(argument);
  fiber.launch->run_fiber(fiber);
  fiber.context.switch_to(fiber.worker->context, true);
}

void CpuLaunch::run_fiber(Fiber& fiber) {
  LaunchSpec const& spec = spec_;
  RankFibers& rank = *fiber.rank;
  try {
    if (fiber.thread == 0) store_state(rank.report(), RankState::running);
    fiber_step(&fiber, hooks::Step::rank_start);
    spec.image.cpu(spec.kernel, rank.grid->state, Block(&fiber, &rank.report(), rank.grid->control),
                   rank.local_rank, rank.scratch.data());
  } catch (Unwind const&) {
  } catch (std::exception const& error) {
    record_fault(fiber, Operation::kernel, Fault::threw, 0, 0, 0, error.what());
  } catch (...) {
    record_fault(fiber, Operation::kernel, Fault::threw, 0, 0, 0,
                 "something that is not a std::exception");
  }
  end_fiber(fiber);
}

void CpuLaunch::end_fiber(Fiber& fiber) {
  RankFibers& rank = *fiber.rank;
  fiber.done.store(true, std::memory_order_release);
  if (rank.alive.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  auto& report = rank.report();
  auto const state =
      static_cast<RankState>(std::atomic_ref(report.state).load(std::memory_order_relaxed));
  // A rank that was poisoned while it waited keeps its wait in the report.
  bool const poisoned_asking = state == RankState::asking && poisoned();
  if (state == RankState::running || (state == RankState::asking && !poisoned_asking))
    store_state(report, RankState::ended);
}

CpuLaunch::CpuLaunch(LaunchSpec const& spec)
    : spec_(spec),
      slices_are_recorded_(spec.grids.front().record != nullptr),
      own_resources_(spec.resources ? nullptr : std::make_unique<CpuLaunchResources>()),
      resources_(spec.resources ? static_cast<CpuLaunchResources&>(*spec.resources)
                                : *own_resources_) {
  u32 ranks = 0;
  for (auto const& grid : spec_.grids) ranks += grid.ranks;
  u32 const cores = usable_cores();
  u32 share = std::max(1u, cores / spec_.neighbours);  // of the cores for all processes here
  share -= std::min(spec_.beside, share / 4);
  u32 const wanted = spec_.thread_a_rank ? ranks : spec_.workers != 0 ? spec_.workers : share;
  worker_count_ = std::min(std::max(wanted, 1u), ranks);
  for (auto const& grid : spec_.grids)
    if (grid.record) grid.record->cores = std::min(worker_count_, cores);
  // The kernel's thread_local variables are those of a new thread, and end with the run.
  if (spec_.thread_a_rank) resources_.dismiss();
  resources_.resize(ranks, ranks * extent().volume(), worker_count_);
  prepare_fibers();
  attentive_ = std::chrono::steady_clock::now() + short_run;
  begin_work();
}

void CpuLaunch::begin_work() {
  u32 begun = 0;
  try {
    for (auto const& worker : workers()) {
      resources_.begin(*worker);
      ++begun;
    }
  } catch (...) {
    // The workers that run already would wait for the rest.
    std::atomic_ref(spec_.grids.front().control->poison)
        .store(Control::leave_the_end, std::memory_order_relaxed);
    end_work();
    auto const error = caught("launch " + spec_.image.name);
    throw Error(Kind::out_of_memory, error.operation(),
                "only " + std::to_string(begun) + " of " + std::to_string(worker_count_) +
                    " worker threads could be started: " + error.cause(),
                "use fewer workers or ranks, or raise the limit of processes (ulimit -u)");
  }
}

void CpuLaunch::end_work() {
  while (resources_.at_work())
    resources_.doze(std::chrono::seconds(1), {}, [this] { return !resources_.at_work(); });
  for (auto const& fiber : resources_.fibers) fiber->context.retire();
  if (spec_.thread_a_rank) resources_.dismiss();
}

void CpuLaunch::prepare_rank(RankFibers& rank, LaunchGrid const& grid, u32 local) try {
  rank.prepare(grid, local, extent().volume(), spec_.scratch);
} catch (std::exception const&) {  // a vector so long
  if (spec_.scratch == 0) throw;
  throw Error(Kind::out_of_memory, "launch " + spec_.image.name,
              "the host's memory is used up: each of " + std::to_string(resources_.ranks.size()) +
                  " ranks needs " + std::to_string(spec_.scratch.value) + " bytes of scratch",
              "give Launch::scratch less, or use fewer ranks");
}

void CpuLaunch::prepare_fibers() {
  for (auto const& worker : workers()) worker->prepare(*this);
  auto const total = static_cast<u32>(resources_.ranks.size());
  u32 const threads = extent().volume();
  u32 made = 0;
  for (auto const& grid : spec_.grids)
    for (u32 local = 0; local < grid.ranks; ++local, ++made) {
      // Neighbours share a worker, since most messages go between neighbours.
      Worker& worker = *workers()[static_cast<u64>(made) * worker_count_ / total];
      RankFibers& rank = *resources_.ranks[made];
      prepare_rank(rank, grid, local);
      if (slices_are_recorded_) rank.ready_since = memory::clock_ns();
      for (u32 thread = 0; thread < threads; ++thread) {
        Fiber& fiber = *resources_.fibers[u64{made} * threads + thread];
        static_cast<FiberView&>(fiber) = view_of(thread, grid.first_rank + local);
        fiber.launch = this;
        fiber.worker = &worker;
        fiber.rank = &rank;
        fiber.prepare(threads == 1 ? stack_of_rank : stack_of_thread, fiber_body);
        worker.fibers.push_back(&fiber);
      }
    }
}

Dim3 CpuLaunch::extent() const { return spec_.threads.x == 0 ? Dim3{} : spec_.threads; }

FiberView CpuLaunch::view_of(u32 thread, u32 world_rank) const {
  Dim3 const all = extent();
  return {thread,
          all.volume(),
          {thread % all.x, thread / all.x % all.y, thread / (all.x * all.y)},
          all,
          world_rank};
}

// True if the fiber could continue. The fiber itself then loads the word again, with acquire.
bool CpuLaunch::ready(Fiber const& fiber) const {
  void const* const word = fiber.word.load(std::memory_order_acquire);
  if (!word) return true;
  auto const type = fiber.type.load(std::memory_order_relaxed);
  return holds({word, fiber.value.load(std::memory_order_relaxed), type,
                fiber.compare.load(std::memory_order_relaxed)},
               load_bits_relaxed(word, type)) ||
         has_news(fiber);
}

bool CpuLaunch::has_news(Fiber const& fiber) const {
  return fiber.takes_news.load(std::memory_order_relaxed) &&
         spec_.has_news(fiber.rank->grid->state, fiber.world_rank);
}

bool CpuLaunch::run_ready(Worker& worker) {
  bool any = false;
  u32 const poison = this->poison();
  auto& fibers = worker.fibers;
  worker.count_look();
  for (std::size_t i = 0; i < fibers.size();) {
    Fiber& fiber = *fibers[i];
    if (poison < fiber.heeds.load(std::memory_order_relaxed) && !ready(fiber)) {
      ++i;
      continue;
    }
    if (worker.idle) {
      idle_.fetch_sub(1);  // in this order: see quiet()
      awakenings_.fetch_add(1);
      worker.idle = false;
    }
    any = true;
    fiber.word.store(nullptr, std::memory_order_relaxed);
    running.store(&fiber, std::memory_order_relaxed);
    worker.runs.store(fiber.world_rank, std::memory_order_relaxed);
    u64 const begin = slices_are_recorded_ ? begin_slice(fiber) : 0;
    worker.context.switch_to(fiber.context);
    running.store(nullptr, std::memory_order_relaxed);
    if (slices_are_recorded_) end_slice(worker, fiber, begin);
    if (fiber.done.load(std::memory_order_relaxed)) {
      fibers[i] = fibers.back();
      fibers.pop_back();
    } else {
      ++i;
    }
  }
  if (any) worker.runs.store(Worker::nobody, std::memory_order_relaxed);
  return any;
}

void CpuLaunch::work(Worker& worker) {
  worker.context.adopt_thread();
  // About as long as it takes to give the core away and get it back. Even with enough cores, the
  // kernel may have put two workers that wait for each other on one core. It is longer if the
  // awaited word comes through `help`, from another node. Then other workers here are no hindrance.
  bool const cores_for_all = u64{worker_count_} * spec_.neighbours <= usable_cores();
  u32 const spins = spec_.help && cores_for_all ? 200 : 20;
  // Naps after other threads wanted the core. They had it twice on end, so it was no accident.
  constexpr u32 polite = 32;
  u32 naps = 0, turns_of_others = 0;
  for (u32 rests = 0; !worker.fibers.empty();) {
    if (run_ready(worker)) {
      rests = 0;
      continue;
    }
    if (!worker.idle) {
      worker.idle = true;
      idle_.fetch_add(1);
    }
    look_for_deadlock();
    if (spec_.help && spec_.help()) {
      rests = 0;
      continue;
    }
    ++rests;
    if (rests < spins) pause_processor();
    else if (rests < spins + 1000 && naps == 0) {
      turns_of_others = core_is_wanted() ? turns_of_others + 1 : 0;
      if (turns_of_others == 2) naps = polite, turns_of_others = 1;
    } else {  // also if the awaited word is far away or late: a late wake-up then costs little
      timespec const nap{0, 50'000};
      nanosleep(&nap, nullptr);
      naps -= naps != 0 ? 1 : 0;
    }
  }
  if (!worker.idle) idle_.fetch_add(1);
  look_for_deadlock();  // the other ranks may have waited for those that ended here
}

void CpuLaunch::doze(std::chrono::microseconds timeout) {
  resources_.doze(timeout, attentive_, [this] { return finished() || deadlocked(); });
}

}  // namespace meshpost::cpu
