#include "copy/workers.hpp"

#include "base/thread.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::copying {

void Workers::run(std::function<void()> task) {
  std::scoped_lock const lock(mutex_);
  // Before the task is queued: if the caller was told that it is not done, it must not be done
  // later.
  if (idle_ <= tasks_.size() && threads_ < most_) try {
      start_thread("copy", [this] { serve(); }).detach();  // until the process ends
      ++threads_;
    } catch (Error const&) {
      if (threads_ == 0) throw;
    }
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [&] { return !tasks_.empty(); });
    --idle_;
    {
      auto const task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
  }
}

Workers& movers() {
  static auto* const one = new Workers(16);
  return *one;
}
Workers& conductors() {
  static auto* const one = new Workers(16);
  return *one;
}

}  // namespace meshpost::copying
