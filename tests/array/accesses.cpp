// Accesses to arrays: which exclude each other, how long they live, and threads.
#include <gmock/gmock.h>

#include <thread>

#include "array/recorded_context.hpp"
#include "copy/devices.hpp"
#include "copy/places.hpp"
#include "meshpost/rma/world.hpp"
#include "support/child.hpp"

namespace meshpost {
namespace {

using test::copied;
using test::copy_devices;
using test::error_of;
using test::recorded;
using test::says;

static_assert(!std::is_copy_constructible_v<Array<int>>);
static_assert(!std::is_copy_constructible_v<ReadAccess<int>>);
static_assert(std::is_nothrow_move_constructible_v<WriteAccess<int>>);
template <class Type>
concept gives_pointer = requires(Type access) { std::forward<Type>(access).data(); };
static_assert(gives_pointer<ReadAccess<int>&> && !gives_pointer<ReadAccess<int>>);

TEST(ArrayAccesses, excluded_accesses_name_both_places_and_lines) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "pressure");
  auto writer = array.write_only(a);
  auto const first = std::to_string(__LINE__ - 1);
  auto const error = error_of([&] { array.read(b); });
  auto const second = std::to_string(__LINE__ - 1);
  EXPECT_TRUE(says(error, Kind::misuse,
                   {"read at b of array 'pressure' (accesses.cpp:" + second + ")",
                    "a write access at a is live, taken at accesses.cpp:" + first, "release()"}));
  EXPECT_TRUE(says(error_of([&] { array.write(b); }), Kind::misuse, {"write at b", "access at a"}));
  EXPECT_TRUE(
      says(error_of([&] { array.write_only(b); }), Kind::misuse, {"write at b", "access at a"}));
  EXPECT_TRUE(says(error_of([&] { array.write(a); }), Kind::misuse, {"write at a", "access at a"}));
  EXPECT_TRUE(
      says(error_of([&] { array.prefetch(b); }), Kind::misuse, {"prefetch at b", "access at a"}));
  writer.release();
  auto const reader = array.read(b);
  auto const other = array.read(a);
  EXPECT_TRUE(says(error_of([&] { array.write(a); }), Kind::misuse, {"a read access at b"}));
  EXPECT_TRUE(says(error_of([&] { array.write_only(recorded("c")); }), Kind::misuse, {"read"}));
}

TEST(ArrayAccesses, reads_and_one_write_of_the_same_memory_are_live_together) {
  auto const a = recorded("a");
  Array<int> array(10, "y");
  array.write_only(a);
  auto const x = array.read(a);
  auto y = array.write(a);
  EXPECT_EQ(x.data(), y.data());
  auto const again = array.read(a);
  y.release();
  auto const all = array.write_only(a);
  EXPECT_EQ(all.data(), x.data());
  auto const& device = copy_devices().front();
  if (!device->in_host_memory()) return;
  // Pinned memory is valid too, but the read has the device's.
  Array<int> shared(10, "shared");
  shared.write_only(Place{"pinned", 0});
  shared.write_only(device);
  auto const at_host = shared.read();
  shared.read(Place{"pinned", 0});
  auto const writer = shared.write();
  EXPECT_EQ(writer.data(), at_host.data());
}

TEST(ArrayAccesses, unwritten_arrays_are_not_read) {
  Array<int> array(10, "new");
  for (auto const& error : {error_of([&] { array.read(); }), error_of([&] { array.write(); }),
                            error_of([&] { array.prefetch(copy_devices().front()); })})
    EXPECT_TRUE(says(error, Kind::misuse, {"array 'new'", "never written", "write_only()"}));
  array.write_only();
}

TEST(ArrayAccesses, wrong_places_are_refused) {
  Array<int> array(std::vector<int>(10), "numbers");
  EXPECT_TRUE(says(error_of([&] { array.read(Place{"cpu", 4711}); }), Kind::bad_argument,
                   {"cpu:4711", "use_devices_for_copies"}));
  EXPECT_TRUE(says(error_of([&] { array.read(std::shared_ptr<Device>()); }), Kind::bad_argument,
                   {"device is null"}));
  EXPECT_TRUE(
      says(error_of([&] { array.read(ContextPtr()); }), Kind::bad_argument, {"context is null"}));
  EXPECT_TRUE(array.valid_at({}));
  auto const moved = std::move(array);
  EXPECT_TRUE(says(error_of([&] { array.read(); }), Kind::misuse, {"moved from"}));
  EXPECT_EQ(moved.read().size(), 10u);
}

// Runs where it is the first test of its process, as in ctest.
TEST(ArrayWithoutDevices, host_memory_needs_no_device) {
  char const* const given = std::getenv("MESHPOST_DEVICES");
  std::string const before = given ? given : "";
  setenv("MESHPOST_DEVICES", "none", 1);
  bool const without = copying::known_devices().empty();
  given ? setenv("MESHPOST_DEVICES", before.c_str(), 1) : unsetenv("MESHPOST_DEVICES");
  if (!without) GTEST_SKIP() << "copies know devices already";
  Array<int> array(std::vector<int>(1000, 7), "numbers");
  EXPECT_EQ(array.read(Place{"pinned", 0})[999], 7);
  EXPECT_EQ(copied(array), 4000u);
  EXPECT_TRUE(says(error_of([&] { array.read(Place{"cpu", 0}); }), Kind::bad_argument,
                   {"allocate at cpu:0", "only the devices (none)", "MESHPOST_DEVICES"}));
}

TEST(ArrayAccesses, memory_lives_as_long_as_accesses_of_a_destroyed_array) {
  auto const a = recorded("a"), b = recorded("b");
  auto array = std::make_unique<Array<int>>(4, "short");
  array->write_only(a)[3] = 5;
  auto one = array->read(a), other = array->read(b);
  array = nullptr;
  EXPECT_EQ(one.span()[3], 5);
  one.release();
  EXPECT_EQ(other.span()[3], 5);
  EXPECT_EQ(b->allocations(), 1u);
  // It may end where nothing can be freed, so that is left to the next call for any array.
  std::thread([access = std::move(other)] {}).join();
  EXPECT_EQ(b->allocations(), 1u);
  Array<int>(1).write_only();
  EXPECT_EQ(a->allocations() + b->allocations(), 0u);
}

TEST(ArrayAccesses, accesses_end_with_an_event_that_later_ones_wait_for) {
  // The host uses memory of CPU devices in place, and waits too.
  std::vector<std::pair<std::shared_ptr<Device>, At>> pairs;
  for (auto const& device : copy_devices())
    for (At const& at : {At(Place{"pinned", 0}), At()}) pairs.emplace_back(device, at);
  for (auto const& [device, at] : pairs) {
    Array<int> array(1000, "numbers");
    auto const stream = device->make_stream();
    std::atomic<bool> go{false}, late{false};
    {
      auto access = array.write_only(device);
      stream->call([&] {
        while (!go) std::this_thread::yield();
      });
      stream->fill(access.data(), 1, Bytes{4000});
      access.release_after(stream->record());
      EXPECT_FALSE(access.live());
    }
    EXPECT_THAT(array.explain(), testing::HasSubstr("ends by an event"));
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      late = go = true;
    });
    auto const read = array.read(at);
    EXPECT_TRUE(late);
    EXPECT_EQ(read.span()[999], 0x01010101);
    opener.join();
    stream->synchronize();
  }
}

TEST(ArrayAccesses, destructor_waits_for_accesses_that_end_with_an_event) {
  auto const& device = copy_devices().front();
  auto const stream = device->make_stream();
  std::atomic<bool> done{false};
  {
    Array<int> array(1000, "numbers");
    auto access = array.write_only(device);
    stream->call([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
    });
    access.release_after(stream->record());
    EXPECT_EQ(error_of([&] { access.release_after(stream->record()); }).kind(), Kind::misuse);
  }
  EXPECT_TRUE(done);
}

TEST(ArrayAccesses, access_of_a_destroyed_array_ends_with_an_event_too) {
  auto const a = recorded("a");
  auto array = std::make_unique<Array<int>>(10, "short");
  auto access = array->write_only(a);
  array = nullptr;
  auto const stream = copy_devices().front()->make_stream();
  EXPECT_EQ(error_of([&] { access.release_after(nullptr); }).kind(), Kind::bad_argument);
  access.release_after(stream->record());
  stream->synchronize();
  for (int i = 0; i < 2000 && a->allocations(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Array<int>(1).write_only();
  }
  EXPECT_EQ(a->allocations(), 0u);
}

TEST(ArrayAccesses, a_stream_ends_an_access) {
  auto const& device = copy_devices().front();
  auto const stream = device->make_stream();
  Array<int> array(1000, "numbers");
  auto access = std::make_shared<WriteAccess<int>>(array.write_only(device));
  stream->fill(access->data(), 2, Bytes{4000});
  stream->call([access = std::move(access)]() mutable { access = nullptr; });
  stream->synchronize();
  EXPECT_EQ(array.read(Place{"pinned", 0})[0], 0x02020202);
}

TEST(ArrayAccesses, threads_read_at_the_same_time) {
  std::vector<int> numbers(20'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
  std::vector<ContextPtr> places{At().context(), At(Place{"pinned", 0}).context()};
  for (int i = 0; i < 3; ++i) places.push_back(recorded("place " + std::to_string(i)));
  for (auto const& device : copy_devices()) places.push_back(At(device).context());
  for (int round = 0; round < 10; ++round) {
    Array<int> array(numbers, "numbers");
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 20; ++i) {
          auto const& at = places[(t * 7 + i * 3) % places.size()];
          if (i % 5 == 4) array.prefetch(at);
          auto const access = array.read(at);
          int last = 0;
          copy(&last, access.data() + numbers.size() - 1, Bytes{sizeof last});
          wrong += last != numbers.back();
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (auto const& one : array.copies()) EXPECT_EQ(one.count, 1u) << array.explain();
  }
}

TEST(ArrayAccesses, threads_that_write_exclude_each_other_and_lose_nothing) {
  std::vector<ContextPtr> const places{recorded("a"), recorded("b"), At().context()};
  Array<int> array(std::vector<int>(100), "counter");
  std::atomic<int> added{0}, refused{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 500; ++i) try {
          auto const access = array.write(places[(t + i) % 3]);
          for (auto& one : access.span()) ++one;
          ++added;
        } catch (Error const& error) {
          EXPECT_EQ(error.kind(), Kind::misuse);
          ++refused;
        }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GT(added, 0);
  EXPECT_EQ(added + refused, 1500);
  for (int const one : array.read()) EXPECT_EQ(one, added);
}

// All calls that may copy, allocate or free.
template <class Visit>
void each_call(Array<int>& array, Visit&& visit) {
  visit([&] { array.read(); });
  visit([&] { array.write(); });
  visit([&] { array.write_only(); });
  visit([&] { array.prefetch({}); });
  visit([&] { array.drop({}); });
  visit([&] { array.resize(3, Contents::keep); });
}

TEST(ArrayForkCpuOnly, makes_every_call_of_the_child_fail_and_leaves_the_parent_alone) {
  auto array = std::make_unique<Array<int>>(std::vector<int>(10, 7), "numbers");
  each_call(*array, [](auto const& call) { EXPECT_EQ(test::status_in_child(call), 100); });
  auto access = array->read();
  EXPECT_EQ(test::status_in_child([&] { access.release(); }), 0);
  EXPECT_EQ(test::status_in_child([&] { array = nullptr; }), 0);
  array = nullptr;
  EXPECT_EQ(access[9], 7);
}

struct AccessesInside {
  Array<int>* array;
  int* refused;

  void operator()(Rank&) const {
    each_call(*array, [&](auto const& call) {
      try {
        call();
      } catch (Error const& error) {
        *refused += says(error, Kind::misuse, {"inside a kernel"}) ? 1 : 0;
      }
    });
  }
};

TEST(ArrayInKernelCpuOnly, is_refused) {
  Array<int> array(std::vector<int>(10, 7), "numbers");
  int refused = 0;
  World world(test::options(1, "cpu:1"));
  world.run(AccessesInside{&array, &refused});
  EXPECT_EQ(refused, 6);
}

TEST(ArrayAccesses, explain_prints_places_accesses_and_bytes) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "pressure");
  array.write_only(a);
  array.read(b);
  auto const live = array.write(b);
  auto const text = array.explain();
  for (auto const* const piece :
       {"array 'pressure', 10 elements, 40 bytes", "a            memory without valid contents",
        "b            valid", "live: write access at b, taken at accesses.cpp:",
        "copied a -> b: 1 times, 40 bytes", "copied in all: 40 bytes"})
    EXPECT_THAT(text, testing::HasSubstr(piece));
}

}  // namespace
}  // namespace meshpost
