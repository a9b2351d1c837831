// Copies between streams of the host: in any order of threads and streams, and with failures of
// queueing.
#include <barrier>
#include <latch>
#include <thread>

#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::copy_devices;
using test::error_of;
using test::says;

// A stream of a CPU device that reports each request before it executes it.
class Told : public Stream {
 public:
  void copy(void* target, void const* source, Bytes size) override {
    inner_->copy(target, source, size);
  }
  void copy(PitchedCopy const& rows) override { inner_->copy(rows); }
  void fill(void* target, u8 value, Bytes size) override { inner_->fill(target, value, size); }
  void call(std::function<void()> work) override { inner_->call(std::move(work)); }
  void store(u32* word, u32 value) override { inner_->store(word, value); }
  std::shared_ptr<Event> record() override {
    if (before_record) before_record();
    return inner_->record();
  }
  void wait(std::shared_ptr<Event> event) override {
    if (before_wait) before_wait();
    inner_->wait(std::move(event));
  }
  void do_synchronize() override { inner_->synchronize(); }
  void* native() override { return nullptr; }
  bool on_host() const override { return true; }

  std::function<void()> before_record, before_wait;

 private:
  std::unique_ptr<Stream> inner_ = open_devices("cpu:1")[0]->make_stream();
};

// At the same time each thread has recorded one stream, and is about to record the other's.
TEST(CopyStreamsCpuOnly, of_two_threads_in_either_order_are_no_deadlock) {
  Told one, other;
  std::barrier meeting(2);
  thread_local int records = 0;
  one.before_record = other.before_record = [&] {
    if (++records == 2) meeting.arrive_and_wait();
  };
  std::vector<u8> const source(1000, 7);
  std::vector<u8> first(1000), second(1000);
  std::thread thread(
      [&] { copy_async(first.data(), source.data(), Bytes{1000}, {{&one, &other}}).wait(); });
  copy_async(second.data(), source.data(), Bytes{1000}, {{&other, &one}}).wait();
  thread.join();
  EXPECT_EQ(first, source);
  EXPECT_EQ(second, source);
}

TEST(CopyStreams, may_be_named_twice) {
  for (auto const& device : copy_devices()) {
    auto const stream = device->make_stream();
    std::vector<u8> const source(300'000, 7);
    std::vector<u8> target(300'000);
    auto under_way = copy_async(target.data(), source.data(), Bytes{300'000},
                                {{stream.get(), stream.get(), stream.get()}});
    stream->synchronize();
    EXPECT_EQ(target, source);
    under_way.wait();
  }
}

TEST(CopyStreamsCpuOnly, of_many_threads_in_random_order_all_get_on) {
  auto const device = open_devices("cpu:1")[0];
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(device->make_stream());
  u64 const seed = test::new_seed();
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      std::vector<u8> const source(100, static_cast<u8>(t));
      std::vector<u8> target(100);
      for (int i = 0; i < 30; ++i) {
        CopyOptions options;
        for (u64 n = 1 + random() % 4; n > 0; --n)
          options.streams.push_back(streams[random() % 3].get());
        std::ranges::fill(target, u8{99});
        copy_async(target.data(), source.data(), Bytes{100}, options).wait();
        EXPECT_EQ(target, source);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(CopyStreamsCpuOnly, go_on_when_one_of_them_can_not_be_used) {
  Told good, bad;
  bad.before_wait = [] { throw std::bad_alloc(); };
  std::vector<u8> const source(10, 7);
  std::vector<u8> target(10);
  EXPECT_THROW(copy_async(target.data(), source.data(), Bytes{10}, {{&good, &bad}}),
               std::bad_alloc);
  good.synchronize();
  bad.synchronize();
  EXPECT_EQ(target, std::vector<u8>(10));
}

}  // namespace
}  // namespace meshpost
