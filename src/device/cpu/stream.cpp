#include "device/cpu/stream.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace meshpost::cpu {
namespace {

class CpuEvent : public Event {
 public:
  bool done() override {
    std::scoped_lock const lock(mutex_);
    return done_;
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }
  void then(std::function<void()> action) override {
    {
      std::scoped_lock const lock(mutex_);
      if (!done_) {
        actions_.push_back(std::move(action));
        return;
      }
    }
    action();
  }
  void signal() {
    std::vector<std::function<void()>> actions;
    {
      std::scoped_lock const lock(mutex_);
      done_ = true;
      actions.swap(actions_);
      changed_.notify_all();
    }
    for (auto const& action : actions) action();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> actions_;
  bool done_ = false;
};

// A thread that works off a queue; started with the first piece of work.
class CpuStream : public Stream {
 public:
  CpuStream() = default;
  CpuStream(CpuStream const&) = delete;
  CpuStream& operator=(CpuStream const&) = delete;
  ~CpuStream() override {
    {
      std::scoped_lock const lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void copy(void* target, void const* source, Bytes size) override {
    if (size != 0) call([=] { std::memmove(target, source, size); });
  }
  void fill(void* target, u8 value, Bytes size) override {
    if (size != 0) call([=] { std::memset(target, value, size); });
  }
  void call(std::function<void()> work) override {
    std::scoped_lock const lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  std::shared_ptr<Event> record() override {
    auto event = std::make_shared<CpuEvent>();
    call([event] { event->signal(); });
    return event;
  }
  void wait(std::shared_ptr<Event> event) override {
    call([event = std::move(event)] { event->wait(); });
  }
  void synchronize() override { record()->wait(); }
  void* native() override { return nullptr; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto const work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Stream> make_stream() { return std::make_unique<CpuStream>(); }

}  // namespace meshpost::cpu
