#include "device/cpu/launch_resources.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/host_hooks.hpp"
#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// A worker polls for this long after a run: about twice the time of the host from one run to the
// next.
constexpr auto attentive_between_runs = std::chrono::microseconds(100);

// Waits for a number other than `last`, and returns it. After a while it sleeps.
u32 await_turn(std::atomic<u32> const& turn, u32 last) {
  for (auto const until = Clock::now() + attentive_between_runs; Clock::now() < until;
       sched_yield())
    if (u32 const now = turn.load(std::memory_order_acquire); now != last) return now;
  turn.wait(last, std::memory_order_acquire);
  return turn.load(std::memory_order_acquire);
}

}  // namespace

void RankFibers::prepare(LaunchGrid const& of, u32 local, u32 threads_in_it, Bytes scratch_size) {
  grid = &of;
  local_rank = local;
  threads = threads_in_it;
  alive.store(threads_in_it, std::memory_order_relaxed);
  for (auto* const word : {&arrived, &generation, &votes[0], &votes[1]})
    word->store(0, std::memory_order_relaxed);
  if (scratch.size() == scratch_size) std::ranges::fill(scratch, 0);
  else scratch = std::vector<char>(scratch_size);
  ready_since = 0;
}

void Fiber::prepare(std::size_t stack_size, void (*body)(void*)) {
  word.store(nullptr, std::memory_order_relaxed);
  takes_news.store(false, std::memory_order_relaxed);
  done.store(false, std::memory_order_relaxed);
  heeds.store(Control::leave, std::memory_order_relaxed);
  if (stack && stack->size() != stack_size) stack.reset();  // before another one is taken
  if (!stack) stack = std::make_unique<Stack>(stack_size);
  context.prepare(*stack, body, this);
}

void Worker::prepare(CpuLaunch& of) {
  launch = &of;
  fibers.clear();
  idle = false;
  looked_at_all = 0;
}

void CpuLaunchResources::resize(u32 rank_count, u32 fiber_count, u32 worker_count) {
  auto const fill = []<class T>(std::vector<std::unique_ptr<T>>& all, u32 count) {
    if (all.size() > count) all.resize(count);
    all.reserve(count);
    while (all.size() < count) all.push_back(std::make_unique<T>());
  };
  fill(ranks, rank_count);
  fill(fibers, fiber_count);
  if (workers.size() < worker_count) fill(workers, worker_count);
}

void CpuLaunchResources::begin(Worker& worker) {
  hooks::at("start a worker's thread");  // for each thread in each run: tests can refuse any
  if (!worker.thread.joinable()) worker.thread = std::thread([this, &worker] { serve(worker); });
  at_work_.fetch_add(1);
  worker.turn.fetch_add(1);
  worker.turn.notify_one();  // no system call while nobody sleeps
}

// After work() a worker touches only the launch resources. When the host sees that no worker is at
// work, the launch may be gone, and the next one may have begun.
void CpuLaunchResources::serve(Worker& worker) {
  worker.id.store(gettid(), std::memory_order_relaxed);
  worker.context.adopt_thread();
  for (u32 turn = 0;;) {
    turn = await_turn(worker.turn, turn);
    if (!worker.launch) return;
    worker.launch->work(worker);
    if (at_work_.fetch_sub(1) == 1) wake_host();
  }
}

void CpuLaunchResources::dismiss() {
  for (auto const& worker : workers) {
    worker->launch = nullptr;
    worker->turn.fetch_add(1);
    worker->turn.notify_one();
  }
  for (auto const& worker : workers)
    if (worker->thread.joinable()) worker->thread.join();
  workers.clear();
}

// Either the host sees the news before it sleeps, or this sees it dozing. Both sides write first,
// then read what the other writes, in the one order of all these operations (seq_cst). The host is
// counted as dozing with the mutex held, so it sleeps when the mutex is free.
void CpuLaunchResources::wake_host() {
  news_.fetch_add(1);
  if (dozing_.load() == 0) return;
  {
    std::scoped_lock const lock(mutex_);
  }
  changed_.notify_all();
}

void CpuLaunchResources::await_news(u32 heard, std::chrono::microseconds timeout,
                                    Clock::time_point attentive) {
  auto const begin = Clock::now();
  for (auto now = begin; now < attentive; now = Clock::now()) {
    if (news_.load() != heard || now - begin >= timeout) return;
    sched_yield();
  }
  std::unique_lock lock(mutex_);
  dozing_.fetch_add(1);
  changed_.wait_until(lock, begin + timeout, [&] { return news_.load() != heard; });
  dozing_.fetch_sub(1);
}

}  // namespace meshpost::cpu
