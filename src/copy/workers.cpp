#include "copy/workers.hpp"

namespace meshpost::copying {

void Workers::run(std::function<void()> task) {
  std::scoped_lock const lock(mutex_);
  tasks_.push_back(std::move(task));
  if (idle_ < tasks_.size() && threads_ < most_) {
    ++threads_;
    std::thread([this] { serve(); }).detach();  // until the process ends, as the object does
  }
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
