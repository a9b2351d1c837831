#include "meshpost/pipeline/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/thread.hpp"
#include "meshpost/base/events.hpp"
#include "pipeline/failure.hpp"
#include "pipeline/waits.hpp"

namespace meshpost {
namespace {

thread_local void const* group_inside = nullptr;  // the group whose function this thread runs
thread_local pipelining::GroupThread* itself_inside = nullptr;  // this thread, as one of that group

void refuse_inside(void const* group, char const* what) {
  if (group_inside == group)
    throw Error(Kind::misuse, what, "a function of the group called it",
                "call it from the thread that made the group");
}

}  // namespace

// Locking: `mutex` guards everything below it. Threads run functions without holding it.
// `changed` is notified after every change that a thread may wait for: a step queued, a step done,
// the end.
struct DeviceGroup::State {
  explicit State(Work undo) : deinit(std::move(undo)) {}

  using Queue = std::list<std::shared_ptr<Work const>>;
  struct Thread {
    Member member;
    Queue queue;
    pipelining::GroupThread known{};  // its `done` is written under `mutex`
    std::thread thread{};
  };

  void run(Thread& self) {
    group_inside = this;
    itself_inside = &self.known;
    auto& done = self.known.done;
    bool started = false;
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ending || !self.queue.empty(); });
      if (self.queue.empty()) break;
      auto const work = std::move(self.queue.front());
      self.queue.pop_front();
      if (done <= failed) {
        lock.unlock();
        bool const ok = call(*work, self.member);
        lock.lock();
        started = started || ok;  // step 0 is init
        if (!ok) failed = std::min<u64>(failed, done);
      }
      ++done;
      changed.notify_all();
    }
    lock.unlock();
    if (started && deinit) call(deinit, self.member);
  }

  bool call(Work const& work, Member const& member) {
    try {
      if (work) work(member);
      return true;
    } catch (...) {
      failure.note(member.device->name());
      return false;
    }
  }

  // Queues a step for all and waits until `members` have finished or dropped it.
  void step(Work work, std::vector<u32> const& members) {
    // All allocations come first: a step is queued for all threads, or for none.
    auto const shared = std::make_shared<Work const>(std::move(work));
    std::vector<Queue> added(threads.size(), Queue(1, shared));
    std::unique_lock lock(mutex);
    if (ending)
      throw Error(Kind::misuse, "step a device group", "it has ended", "make another group");
    failure.rethrow_if_any();
    u64 const target = queued + 1;
    // Before anything is queued: a step that is refused leaves the group as it was.
    pipelining::Waiting const waiting(itself_inside, awaited(members, target),
                                      "step a device group");
    queued = target;
    for (u32 i = 0; i < added.size(); ++i)
      threads[i].queue.splice(threads[i].queue.end(), added[i]);
    changed.notify_all();
    changed.wait(lock, [&] {
      return std::all_of(members.begin(), members.end(),
                         [&](u32 i) { return threads[i].known.done >= target; });
    });
    failure.rethrow_if_any();
  }

  // Threads and steps that a caller waits for if it waits for these members. Nothing if it
  // belongs to no group.
  std::vector<pipelining::Awaited> awaited(std::vector<u32> const& members, u64 steps) const {
    std::vector<pipelining::Awaited> all;
    if (!itself_inside) return all;
    for (u32 const i : members) all.push_back({&threads[i].known, steps});
    return all;
  }

  // \throws Error(misuse) before anything has ended
  void end() {
    pipelining::Waiting const waiting(itself_inside, awaited(everyone(), ~u64{0}),
                                      "finalize a device group");
    {
      std::scoped_lock const lock(mutex);
      ending = true;
    }
    changed.notify_all();
    // Several callers may end it at once: one joins, the others wait for that.
    std::scoped_lock const lock(joining);
    for (auto& one : threads)
      if (one.thread.joinable()) one.thread.join();
  }

  // Tells the threads to end, for a caller that can't wait for that.
  void end_later() {
    std::scoped_lock const lock(mutex);
    ending = true;
    changed.notify_all();
    for (auto& one : threads)
      if (one.thread.joinable()) one.thread.detach();
  }

  std::vector<u32> everyone() const {
    std::vector<u32> all(threads.size());
    for (u32 i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  Work deinit;
  pipelining::Failure failure;
  std::mutex mutex, joining;
  std::condition_variable changed;
  std::deque<Thread> threads;        // never resized while threads run
  u64 queued = 0, failed = ~u64{0};  // steps queued; the first that failed (later ones are dropped)
  bool ending = false, reported = false;
};

DeviceGroup::DeviceGroup(std::vector<std::shared_ptr<Device>> devices, Work init, Work deinit)
    : state_(std::make_shared<State>(std::move(deinit))) {
  refuse_after_fork("make a device group");
  if (devices.empty() || std::count(devices.begin(), devices.end(), nullptr) != 0)
    throw Error(Kind::bad_argument, "make a device group",
                devices.empty() ? "there are no devices" : "a device is null",
                "open some with open_devices()");
  auto const count = static_cast<u32>(devices.size());
  for (u32 i = 0; i < count; ++i) {
    state_->threads.emplace_back();
    state_->threads.back().member = {devices[i], i, count};
  }
  try {
    for (auto& one : state_->threads)
      one.thread = start_thread("step a device group", [state = state_, &one] { state->run(one); });
    state_->step(std::move(init), state_->everyone());
  } catch (...) {
    state_->end();
    throw;
  }
}

DeviceGroup::~DeviceGroup() {
  if (leave_to_parent(state_)) return;
  try {
    try {
      finalize();
    } catch (std::exception const& error) {
      if (!ended()) state_->end_later();  // its threads keep the state until they end
      warn(fmt::format("a device group ended with an error: {}", error.what()));
    }
  } catch (...) {  // no memory for the text: a destructor must not throw
    return;
  }
}

bool DeviceGroup::inside() const { return group_inside == state_.get(); }

bool DeviceGroup::ended() const {
  std::scoped_lock const lock(state_->mutex);
  return state_->ending;
}

u32 DeviceGroup::size() const { return static_cast<u32>(state_->threads.size()); }

void DeviceGroup::step_all(Work process) { step_all(std::move(process), state_->everyone()); }

void DeviceGroup::step_all(Work process, std::vector<u32> const& members) {
  refuse_after_fork("step a device group");
  refuse_inside(state_.get(), "step a device group");
  for (u32 const member : members)
    if (member >= size())
      throw Error(Kind::bad_argument, "step a device group",
                  fmt::format("wait for member {} of {}", member, size()), "members count from 0");
  try {
    state_->step(std::move(process), members);
  } catch (...) {
    std::scoped_lock const lock(state_->mutex);
    state_->reported = state_->failure.any();
    throw;
  }
}

void DeviceGroup::finalize() {
  refuse_after_fork("finalize a device group");
  refuse_inside(state_.get(), "finalize a device group");
  state_->end();
  {
    std::scoped_lock const lock(state_->mutex);
    if (std::exchange(state_->reported, true)) return;
  }
  state_->failure.rethrow_if_any();
}

}  // namespace meshpost
