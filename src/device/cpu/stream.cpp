#include "device/cpu/stream.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.hpp"
#include "base/pauses.hpp"
#include "base/thread.hpp"
#include "device/cpu/channel.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/exchange.hpp"
#include "meshpost/device/block.hpp"
#include "meshpost/device/stream_exchange.hpp"

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

void carry_out(StreamWords const& words, StreamPut const& put) {
  if (memory::load_relaxed(words.ended) != 0) return;
  u64 const bytes = put.size();
  if (bytes != 0 && put.target != put.source) std::memmove(put.target, put.source, bytes);
  if (!put.counter) return;
  if (put.origin_word) memory::store_relaxed(put.origin_word, put.origin);
  memory::add(put.counter, 1, Order::system);  // releases the bytes
}

struct Missing {
  AwaitedCounter const* first = nullptr;  // null: all have come
  u32 come = 0;                           // of that one
  u32 all = 0;
};

Missing missing_of(std::vector<AwaitedCounter> const& counters) {
  Missing found;
  for (auto const& one : counters) {
    u32 const by_host = one.raised_by_host ? memory::load_acquire(one.raised_by_host) : 0;
    u32 const come =
        memory::load_acquire(one.raised) + by_host - memory::load_relaxed(one.consumed);
    found.all += come;
    if (!found.first && static_cast<i32>(come - one.count) < 0)
      found.first = &one, found.come = come;
  }
  return found;
}

void tell(StreamNote& note, Missing const& missing, StreamNote::Waiting waiting) {
  auto const& awaited = *missing.first;
  memory::store_relaxed(&note.operation, awaited.operation);
  memory::store_relaxed(&note.peer, awaited.peer);
  memory::store_relaxed(&note.window, awaited.window);
  memory::store_relaxed(&note.tag, awaited.tag);
  memory::store_relaxed(&note.count, awaited.count);
  memory::store_relaxed(&note.come, missing.come);
  memory::store_relaxed(&note.consumed, memory::load_relaxed(awaited.consumed));
  memory::store_relaxed(&note.all, missing.all);
  memory::store(&note.waiting, u32{waiting}, Order::system);
}

void carry_out(StreamWords const& words, std::vector<AwaitedCounter> const& counters) {
  constexpr u32 long_wait = 64;  // looks, after which the host is told
  if (memory::load_relaxed(words.ended) != 0) return;
  Pauses pauses;
  for (auto missing = missing_of(counters); missing.first; missing = missing_of(counters)) {
    if (memory::load_acquire(&words.note->poisoned) != 0) {
      memory::store_relaxed(words.ended, 1);
      return tell(*words.note, missing, StreamNote::ended);
    }
    if (pauses.looks() >= long_wait) tell(*words.note, missing, StreamNote::yes);
    pauses.rest();
  }
  memory::store(&words.note->waiting, 0u, Order::system);
  for (auto const& one : counters)
    memory::store_relaxed(one.consumed, memory::load_relaxed(one.consumed) + one.count);
}

std::vector<AwaitedCounter> all_of(StreamList<AwaitedCounter> const& list) {
  std::vector<AwaitedCounter> all(list.count);
  for (u32 i = 0; i < list.count; ++i) all[i] = list[i];
  return all;
}

void carry_out(StreamWords const& words, StreamGather const& gather) {
  carry_out(words, all_of(gather.credits));
  if (memory::load_relaxed(words.ended) != 0) return;
  u32 const odd = memory::load_relaxed(gather.step) % 2;
  cpu::gather(gather, odd);
  for (u32 i = 0; i < gather.pieces.count; ++i)
    if (auto* const counter = gather.pieces[i].counter) memory::add(counter, 1, Order::system);
}

void carry_out(StreamWords const& words, StreamScatter const& scatter) {
  carry_out(words, all_of(scatter.awaited));
  if (memory::load_relaxed(words.ended) != 0) return;
  u32 const step = memory::load_relaxed(scatter.step);
  if (scatter.combine == StreamCombine::replace)
    exchange::with_unit(scatter.unit, [&](auto unit) {
      exchange::replace<decltype(unit)>(scatter, {step % 2, 0, 1});
    });
  else
    exchange::with_number(scatter.number, [&](auto number) {
      exchange::combine<decltype(number)>(scatter, {step % 2, 0, 1});
    });
  for (u32 i = 0; i < scatter.credits.count; ++i) memory::add(scatter.credits[i], 1, Order::system);
  memory::store_relaxed(scatter.step, step + 1);
}

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
  void await_word(u32 const* word, u32 value) override {
    call([=] {
      Pauses pauses;
      while (static_cast<i32>(memory::load_acquire(word) - value) < 0) pauses.rest();
    });
  }
  std::shared_ptr<Event> record() override {
    auto event = std::make_shared<HostEvent>();
    call([event] { event->signal(); });
    return event;
  }
  void wait(std::shared_ptr<Event> event) override {
    call([event = std::move(event)] { event->wait(); });
  }
  void do_synchronize() override { record()->wait(); }
  void* native() override { return nullptr; }
  bool on_host() const override { return true; }
  void put(StreamWords const& words, StreamPut const& put) override {
    call([words, put] { carry_out(words, put); });
  }
  void await(StreamWords const& words, std::span<AwaitedCounter const> counters) override {
    call([words, all = std::vector(counters.begin(), counters.end())] { carry_out(words, all); });
  }
  void send(StreamWords const& words, StreamChannel const& to, StreamPut const& put,
            StreamPost const* /*far*/) override {
    call([=] { cpu::send(words, to, put); });
  }
  void receive(StreamWords const& words, StreamChannel const& from, StreamReceive const& into,
               StreamPost const* /*far*/) override {
    call([=] { cpu::receive(words, from, into); });
  }
  void gather(StreamWords const& words, StreamGather const& gather) override {
    call([words, gather] { carry_out(words, gather); });
  }
  void scatter(StreamWords const& words, StreamScatter const& scatter) override {
    call([words, scatter] { carry_out(words, scatter); });
  }

 private:
  std::unique_ptr<StreamQueue> queue_ = std::make_unique<StreamQueue>();
};

}  // namespace

std::unique_ptr<Stream> make_stream() { return std::make_unique<CpuStream>(); }

}  // namespace meshpost::cpu
