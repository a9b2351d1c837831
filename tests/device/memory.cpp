// Memory and streams of CPU devices.
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "meshpost/device/backend.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

std::shared_ptr<Device> device() { return open_devices("cpu:1").front(); }

TEST(Memory, is_allocated_aligned_and_may_be_empty) {
  for (u64 const size : {u64{0}, u64{1}, u64{255}, u64{1} << 20}) {
    auto const memory = device()->allocate(Bytes{size}, MemoryKind::device);
    ASSERT_NE(memory.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<u64>(memory.data()) % 256, 0u);
    EXPECT_EQ(memory.size(), size);
    std::memset(memory.data(), 1, size);
  }
}

TEST(Memory, that_is_not_there_is_refused_with_what_is_free) {
  for (u64 const size : {~u64{0}, u64{1} << 60, u64{1} << 46})
    EXPECT_TRUE(says(error_of([size] { device()->allocate(Bytes{size}, MemoryKind::pinned); }),
                     Kind::out_of_memory,
                     {"allocate on cpu:0", std::to_string(size) + " bytes were asked for",
                      "are free", "use less"}));
}

TEST(Memory, that_is_free_is_no_more_than_all) {
  for (auto const& device : open_devices("")) {
    EXPECT_GT(device->free_memory(), 0u) << device->name();
    EXPECT_LE(device->free_memory(), device->info().memory.value) << device->name();
    EXPECT_EQ(device->info().ecc.has_value(), !device->in_host_memory()) << device->name();
  }
}

TEST(Memory, is_located_filled_and_copied) {
  auto const memory = device()->allocate(Bytes{64}, MemoryKind::device);
  EXPECT_TRUE(device()->locate(memory.data()).usable);
  EXPECT_FALSE(device()->locate(nullptr).usable);
  device()->fill(memory.data(), 7, Bytes{64});
  std::vector<u8> out(64);
  device()->read(out.data(), memory.data(), Bytes{64});
  EXPECT_EQ(out, std::vector<u8>(64, 7));
}

[[noreturn]] void reserve_within_a_few_addresses() {
  rlimit const limit{1u << 30, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  auto const error = error_of([] { backend("cpu").reserve({open_devices("cpu:2"), {0, 1}, 2}); });
  std::fprintf(stderr, "%s\n", error.what());
  std::_Exit(error.kind() == Kind::out_of_memory ? 0 : 1);
}

TEST(AddressSpace, that_a_limit_of_addresses_forbids_names_that_limit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more addresses than this leaves";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(reserve_within_a_few_addresses(), testing::ExitedWithCode(0),
              "2 devices times [0-9]+ bytes of addresses.*ulimit -v.*is 1048576 KiB");
}

TEST(AddressSpace, puts_every_device_at_its_stride_and_grows_with_zeroed_memory) {
  auto const space = backend("cpu").reserve({open_devices("cpu:3"), {0, 1, 2}, 3});
  u64 const page = space->granularity(), stride = space->stride();
  space->extend(Bytes{0}, Bytes{4 * page});
  for (u64 d = 0; d < 3; ++d) {
    char* const at = space->base() + d * stride;
    for (u64 i = 0; i < 4 * page; i += page) EXPECT_EQ(at[i], 0);
    std::memset(at, static_cast<int>(d + 1), 4 * page);
  }
  space->extend(Bytes{4 * page}, Bytes{16 * page});
  for (u64 d = 0; d < 3; ++d) {
    char* const at = space->base() + d * stride;
    EXPECT_EQ(at[4 * page - 1], static_cast<char>(d + 1)) << "what was there stays";
    EXPECT_EQ(at[4 * page], 0);
    at[20 * page - 1] = 1;
  }
}

TEST(AddressSpace, refuses_more_than_there_is) {
  auto const space = backend("cpu").reserve({open_devices("cpu:2"), {0, 1}, 2});
  for (u64 const size : {space->stride().value, 2 * space->stride().value, u64{1} << 62})
    EXPECT_TRUE(says(
        error_of([&] { space->extend(Bytes{0}, Bytes{size}); }), Kind::out_of_memory,
        {std::to_string(size) + " bytes on each of 2 devices", "are free", "smaller windows"}));
  space->extend(Bytes{0}, space->granularity());
  space->base()[space->stride()] = 1;
}

TEST(Stream, works_in_order_and_returns_at_once) {
  auto const stream = device()->make_stream();
  std::vector<int> order;
  std::vector<u8> a(1000, 1), b(1000), c(1000);
  std::promise<void> all_are_queued;  // a call that waited for the stream would never return
  stream->call([&] {
    all_are_queued.get_future().wait();
    order.push_back(1);
  });
  stream->fill(a.data(), 9, Bytes{1000});
  stream->copy(b.data(), a.data(), Bytes{1000});
  stream->fill(a.data(), 3, Bytes{500});
  auto const event = stream->record();
  stream->call([&] { order.push_back(2); });
  EXPECT_FALSE(event->done());
  all_are_queued.set_value();
  event->wait();
  EXPECT_TRUE(event->done());
  stream->synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(b, std::vector<u8>(1000, 9));
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(a[500], 9);
  EXPECT_EQ(stream->native(), nullptr);
}

TEST(Stream, waits_for_an_event_of_another) {
  auto const one = device()->make_stream(), two = device()->make_stream();
  std::atomic<int> value{0};
  one->call([&] {
    std::this_thread::sleep_for(30ms);
    value = 1;
  });
  two->wait(one->record());
  int seen = -1;
  two->call([&] { seen = value; });
  two->synchronize();
  EXPECT_EQ(seen, 1);
}

TEST(Stream, finishes_its_work_before_it_ends) {
  std::atomic<int> done{0};
  {
    auto const stream = device()->make_stream();
    for (int i = 0; i < 100; ++i) stream->call([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
  device()->make_stream();  // without any
}

TEST(Stream, of_the_user_is_not_there_on_a_cpu) {
  EXPECT_TRUE(says(error_of([] { device()->adopt_stream(nullptr); }), Kind::bad_argument,
                   {"adopt_stream on cpu:0", "make_stream"}));
}

}  // namespace
}  // namespace meshpost
