// This is about a thread that does not come back from the engine. src/net/channel_losses.cpp says
// why that can be, and how it is noticed. The thread may be the proxy's or a worker of the run. The
// run is ended without it, and so is the World:
// - The thread that supervises the run never hangs there, because it does not enter the engine. It
//   finds out by waiting. The only conclusion is that the run, which a lost process ends in any
//   case, ends in this way. If the thread was only slow, more is kept than necessary.
// - From then on the hanging thread owns driving_, and with it the engine and everything that is
//   done under it. Nobody takes driving_ again, calls the engine or joins the thread. If the thread
//   comes back (a process that was stopped continues, and releases its lock), the channel keeps it
//   for ever. Its stack and all memory that the engine may touch are kept until the process ends.
//   runs/launching/run.cpp keeps the launch with its fibers, states and kernel; world_state.cpp
//   keeps the World with this proxy, its heap and its devices.
// - All other threads continue and end: workers find driving_ taken or the proxy not awake, and
//   their ranks poisoned.
// - The next run begins with an exchange between all processes, which throws, because one is lost.
#include "rma/via/proxy/driver.hpp"

#include <sched.h>

#include <utility>

#include "base/host_hooks.hpp"

namespace meshpost::detail {

void Driver::begin_thread() {
  hooks::at("start the proxy's thread");
  thread_ = std::thread([this] { work(); });
}

void Driver::end_thread() {
  {
    std::scoped_lock const lock(sleeping_);
    ending_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Driver::start() {
  {
    std::scoped_lock const lock(sleeping_);
    awake_ = woken_ = true;
  }
  wakes_.notify_all();
}

bool Driver::stop() {
  if (!awake_.load() || (channel_ && channel_->hangs())) return false;
  try {
    auto const alone = this->alone();  // waits for the end of a round
    awake_ = false;
  } catch (Error const&) {
    return false;  // the thread that hangs owns the rest
  }
  // Nobody drives any more. The thread sees it when it next reads awake_, and sleeps.
  return true;
}

void Driver::begin_work() {
  idle_.store(false);
  activity_.fetch_add(1);
}

bool Driver::drive(bool helping) {
  std::unique_lock const alone(driving_, std::try_to_lock);
  if (!alone || !awake_.load()) return false;
  if (helping) helps_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (work_.get_on()) return true;
  } catch (Error const& error) {  // of a device: it ends the run
    fail(error);
  }
  if (work_.nothing_left()) idle_.store(true);
  return false;
}

void Driver::work() {
  while (await_run()) attend_run();
}

// Asleep. False: the World ends.
bool Driver::await_run() {
  std::unique_lock lock(sleeping_);
  wakes_.wait(lock, [this] { return ending_.load() || awake_.load(); });
  return !ending_.load();
}

void Driver::attend_run() {
  constexpr std::chrono::microseconds nap{50}, longest_nap{1000};
  auto away = nap;  // while others do the work
  u64 helps = helps_.load(std::memory_order_relaxed);
  for (u32 rests = 0; awake_.load();) {
    u64 const before = std::exchange(helps, helps_.load(std::memory_order_relaxed));
    if (helps != before) {
      rests = 0;
      sleep(away);
      away = std::min(2 * away, longest_nap);
      continue;
    }
    away = nap;
    if (drive(false)) {
      rests = 0;
    } else if (++rests < 100'000 && !shares_cores_) {
      continue;                 // ranks on GPUs: this thread has a core
    } else if (rests < 4000) {  // without a pause: the ranks may share this core
      sched_yield();
    } else {
      sleep(nap);
    }
  }
}

void Driver::sleep(std::chrono::microseconds length) {
  std::unique_lock lock(sleeping_);
  wakes_.wait_for(lock, length, [this] { return !awake_.load() || woken_; });
  woken_ = false;
}

std::optional<Error> Driver::failure() const {
  std::scoped_lock const lock(mutex_);
  return failure_;
}

void Driver::fail(Error error) {
  std::scoped_lock const lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

bool Driver::hangs() {
  if (!channel_) return false;
  if (channel_->hangs()) return true;
  if (!group_.processes().lost() || !channel_->take_if_it_hangs()) return false;
  awake_ = false;
  return true;
}

void Driver::see_that_nobody_hangs() {
  if (!hangs()) return;
  throw channel_->hang_error(group_.processes().lost_error("run", *group_.processes().lost()),
                             "this process", "World");
}

void Driver::wake() {
  {
    std::scoped_lock const lock(sleeping_);
    woken_ = true;
  }
  wakes_.notify_all();
}

std::unique_lock<std::mutex> Driver::alone() {
  std::unique_lock lock(driving_, std::try_to_lock);
  for (; !lock.owns_lock() && !lock.try_lock(); sched_yield()) see_that_nobody_hangs();
  return lock;
}

}  // namespace meshpost::detail
