#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::blas {

/// Threads that do one piece of work together, again and again. The caller is member 0.
class Team {
 public:
  explicit Team(u32 members) {
    for (u32 member = 1; member < members; ++member)
      threads_.emplace_back([this, member] { serve(member); });
  }
  ~Team() {
    {
      std::scoped_lock const lock(mutex_);
      closing_ = true;
    }
    begun_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  Team(Team const&) = delete;
  Team& operator=(Team const&) = delete;

  u32 size() const { return static_cast<u32>(threads_.size()) + 1; }

  /// Calls work(member) on every member and returns when all have returned. Only one caller at a
  /// time; `work` must not throw.
  void run(std::function<void(u32)> const& work) {
    {
      std::scoped_lock const lock(mutex_);
      work_ = &work;
      busy_ = size() - 1;
      ++round_;
    }
    begun_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve(u32 member) {
    u64 seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      begun_.wait(lock, [&] { return closing_ || round_ != seen; });
      if (closing_) return;
      seen = round_;
      auto const* const work = work_;
      lock.unlock();
      (*work)(member);
      lock.lock();
      if (--busy_ == 0) ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::function<void(u32)> const* work_ = nullptr;  // of round_; lives until busy_ is 0
  u64 round_ = 0;
  u32 busy_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace meshpost::blas
