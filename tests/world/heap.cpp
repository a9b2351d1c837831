#include "meshpost/world/heap.hpp"

#include <cstring>

#include "base/host_hooks.hpp"
#include "meshpost/device/memory_map.hpp"
#include "support/boxed.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

Layout layout(char const* devices = "cpu:3", u32 ranks = 4) { return make_layout(devices, ranks); }

TEST(Heap, gives_offsets_that_mean_the_same_on_every_device) {
  auto const where = layout();
  Heap heap(where);
  u64 const a = heap.allocate(1000), b = heap.allocate(5000);
  EXPECT_NE(a, 0u) << "0 means none";
  EXPECT_EQ(a % 256, 0u);
  EXPECT_TRUE(b >= a + 1000 || a >= b + 5000);
  for (u32 d = 0; d < 3; ++d) {
    EXPECT_EQ(heap.at(d, a), heap.spaces().seen_by(d, d, a));
    for (u64 i = 0; i < 5000; ++i) ASSERT_EQ(heap.at(d, b)[i], 0);
    std::memset(heap.at(d, b), 1, 5000);
  }
}

TEST(Heap, refuses_what_does_not_fit_beside_what_it_holds_and_keeps_that) {
  Heap heap(layout());
  u64 const before = heap.size();
  std::memset(heap.at(1, 0), 7, before);
  u64 const size = heap.spaces().stride() - before / 2;
  EXPECT_TRUE(says(error_of([&] { heap.allocate(size); }), Kind::out_of_memory,
                   {std::to_string(before) + " are in the heap already"}));
  EXPECT_EQ(heap.size(), before);
  for (u64 const at : {u64{0}, before / 2, before - 1}) EXPECT_EQ(heap.at(1, 0)[at], 7);
  EXPECT_TRUE(memory_map().find(heap.at(1, 0)));
}

TEST(Heap, grows_and_keeps_what_it_holds) {
  Heap heap(layout());
  u64 const small = heap.allocate(100);
  std::memset(heap.at(2, small), 5, 100);
  u64 const large = heap.allocate(u64{32} << 20);
  heap.at(2, large)[(u64{32} << 20) - 1] = 1;
  EXPECT_EQ(heap.at(2, small)[99], 5);
  heap.release(large, u64{32} << 20);
  EXPECT_EQ(heap.allocate(u64{32} << 20), large) << "used again";
}

TEST(Heap, gives_multiples_of_256) {
  Heap heap(layout());
  for (u64 size = 1; size <= u64{4} << 20; size = size * 3 + 1)
    EXPECT_EQ(heap.allocate(size) % 256, 0u) << size;
}

TEST(Heap, refuses_more_than_a_device_has_and_goes_on) {
  Heap heap(layout());
  for (u64 const size : {heap.spaces().stride() + 1, u64{1} << 60, ~u64{0}, ~u64{0} - 255})
    EXPECT_TRUE(
        says(error_of([&] { heap.allocate(size); }), Kind::out_of_memory, {"use smaller windows"}))
        << size;
  EXPECT_NO_THROW(heap.allocate(100));
}

// Boxed devices refuse to map where something is mapped, as GPUs do.
TEST(Heap, that_can_not_grow_on_one_device_has_grown_on_none) {
  test::register_boxed();
  Heap heap(layout("boxed:0,cpu:2", 1));
  u64 const before = heap.size(), more = u64{8} << 20;
  u32 devices = 0;
  hooks::install_host_hook([&](std::string_view place) {
    if (place == "grow a device's memory" && ++devices == 3)
      throw Error(Kind::out_of_memory, "grow", "nothing is left", "wait");
  });
  auto const error = error_of([&] { heap.allocate(more); });
  hooks::install_host_hook(nullptr);
  EXPECT_TRUE(says(error, Kind::out_of_memory, {"nothing is left"}));
  EXPECT_EQ(heap.size(), before);
  for (u32 d = 0; d < 3; ++d) {
    EXPECT_TRUE(memory_map().find(heap.at(d, 0)));
    EXPECT_TRUE(memory_map().find(heap.at(d, before - 1)));
    EXPECT_FALSE(memory_map().find(heap.at(d, before))) << "device " << d;
  }
  for (int i = 0; i < 2; ++i) {
    u64 const offset = heap.allocate(more);
    for (u32 d = 0; d < 3; ++d) {
      EXPECT_TRUE(memory_map().find(heap.at(d, 0)));
      EXPECT_TRUE(memory_map().find(heap.at(d, offset)));
      EXPECT_EQ(heap.at(d, offset)[more - 1], 0);
    }
  }
}

TEST(Heap, keeps_counters_apart_and_clears_them_all) {
  auto const where = layout("cpu:2", 4);
  Heap heap(where);
  EXPECT_TRUE(heap.swept_ranges().empty());
  std::vector<u64> offsets;
  for (u32 i = 0; i < 50; ++i)
    offsets.push_back(heap.allocate_swept(i % 3 == 0 ? Heap::Swept::words : Heap::Swept::counters,
                                          100 + i * 1000));
  u64 const huge =
      heap.allocate_swept(Heap::Swept::counters, u64{3} << 20);  // larger than a region
  offsets.push_back(huge);
  auto const in_range = [&](u64 offset) {
    for (auto const& range : heap.swept_ranges())
      if (offset >= range.offset && offset < range.offset + range.size) return true;
    return false;
  };
  for (u64 const offset : offsets) {
    EXPECT_EQ(offset % 128, 0u) << "no two windows share a cache line";
    EXPECT_TRUE(in_range(offset));
    for (u32 d = 0; d < 2; ++d) {
      EXPECT_EQ(*reinterpret_cast<u32*>(heap.at(d, offset)), 0u);
      *reinterpret_cast<u32*>(heap.at(d, offset)) = 99;
    }
  }
  heap.clear_swept();
  for (u64 const offset : offsets)
    for (u32 d = 0; d < 2; ++d) EXPECT_EQ(*reinterpret_cast<u32*>(heap.at(d, offset)), 0u);
  heap.release_swept(offsets[0], 100);
  EXPECT_EQ(heap.allocate_swept(Heap::Swept::words, 128), offsets[0]);
}

TEST(Layout, shares_the_cores_among_cpu_devices) {
  auto const one = make_layout("cpu:1", 0), many = make_layout("cpu:64", 0);
  EXPECT_GE(one.ranks_per_device, 16u);
  EXPECT_EQ(many.ranks_per_device, 16u);
  EXPECT_EQ(many.ranks(), 64u * 16u);
  EXPECT_EQ(layout().device_of(3), 0u);
  EXPECT_EQ(layout().device_of(4), 1u);
  EXPECT_EQ(layout().device_of(11), 2u);
}

TEST(Layout, has_a_limit_of_ranks) {
  EXPECT_TRUE(says(error_of([] { make_layout("cpu:1", 65537); }), Kind::bad_argument,
                   {"65537 ranks a device", "at most 65536"}));
}

}  // namespace
}  // namespace meshpost
