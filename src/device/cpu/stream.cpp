#include "device/cpu/stream.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.hpp"
#include "base/thread.hpp"
#include "device/cpu/event.hpp"

namespace meshpost::cpu {
namespace {

// A thread that works off a queue; it starts with the first piece of work.
class StreamQueue {
 public:
  StreamQueue() = default;
  StreamQueue(StreamQueue const&) = delete;
  StreamQueue& operator=(StreamQueue const&) = delete;
  ~StreamQueue() {
    {
      std::scoped_lock const lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(std::function<void()> work) {
    std::scoped_lock const lock(mutex_);
    // First start the thread: queued work counts as given to it, so without a thread nothing may be
    // queued.
    if (!thread_.joinable()) thread_ = start_thread("run a stream", [this] { run(); });
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }

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

class CpuStream : public Stream {
 public:
  CpuStream() { refuse_after_fork("make a stream"); }
  CpuStream(CpuStream const&) = delete;
  CpuStream& operator=(CpuStream const&) = delete;
  ~CpuStream() override { leave_to_parent(queue_); }
  void copy(void* target, void const* source, Bytes size) override {
    if (size != 0) call([=] { std::memmove(target, source, size); });
  }
  void copy(PitchedCopy const& rows) override {
    call([rows] {
      for_each_row(rows, [](void* to, void const* from, u64 n) { std::memcpy(to, from, n); });
    });
  }
  void fill(void* target, u8 value, Bytes size) override {
    if (size != 0) call([=] { std::memset(target, value, size); });
  }
  void call(std::function<void()> work) override {
    refuse_after_fork("use a stream");
    queue_->add(std::move(work));
  }
  void store(u32* word, u32 value) override {
    call([=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
  }
  std::shared_ptr<Event> record() override {
    auto event = std::make_shared<HostEvent>();
    call([event] { event->signal(); });
    return event;
  }
  void wait(std::shared_ptr<Event> event) override {
    call([event = std::move(event)] { event->wait(); });
  }
  void synchronize() override { record()->wait(); }
  void* native() override { return nullptr; }
  bool on_host() const override { return true; }

 private:
  std::unique_ptr<StreamQueue> queue_ = std::make_unique<StreamQueue>();
};

}  // namespace

std::unique_ptr<Stream> make_stream() { return std::make_unique<CpuStream>(); }

}  // namespace meshpost::cpu
