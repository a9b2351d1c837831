// Batches have the same result as their copies made one after the other.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "copy/overlap.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::copy_devices;
using test::error_of;
using test::Memory;
using test::random_data;
using test::says;

std::string name_of(Segment const& segment, u8 const* base) {
  return std::to_string(static_cast<u8 const*>(segment.source) - base) + "+" +
         std::to_string(segment.size.value) + " to " +
         std::to_string(static_cast<u8*>(segment.target) - base);
}

// Random copies within one piece of memory. None overlaps itself.
std::vector<Segment> random_segments(u8* base, u64 size, u64 count, std::mt19937_64& random) {
  std::vector<Segment> all;
  while (all.size() < count) {
    u64 const length = random() % (size / 3);
    u64 const from = random() % (size - length), to = random() % (size - length);
    if (length > 0 && from < to + length && to < from + length) continue;
    all.push_back({base + to, base + from, Bytes{length}});
  }
  return all;
}

bool meet(Segment const& a, Segment const& b) {
  auto const touch = [](void const* x, u64 m, void const* y, u64 k) {
    auto const *one = static_cast<u8 const*>(x), *other = static_cast<u8 const*>(y);
    return m > 0 && k > 0 && one < other + k && other < one + m;
  };
  return touch(a.target, a.size, b.target, b.size) || touch(a.target, a.size, b.source, b.size) ||
         touch(a.source, a.size, b.target, b.size);
}

// Independent entries begin at once. The others keep the order: each begins after the entries that
// it waits for.
TEST(Dependences, let_an_entry_begin_when_all_earlier_ones_that_it_meets_are_done) {
  std::mt19937_64 random(test::new_seed());
  std::vector<u8> memory(64);
  for (int i = 0; i < 3000; ++i) {
    auto const list = random_segments(memory.data(), 64, 1 + random() % 12, random);
    auto const all = copying::dependences(list);
    std::vector<char> done(list.size());  // when this entry begins, however long others take
    for (u64 late = 0; late < list.size(); ++late) {
      auto const& [meets, after] = all[late];
      for (u32 const early : after) {
        ASSERT_LT(early, late);
        ASSERT_TRUE(meet(list[early], list[late])) << "they don't meet";
        ASSERT_FALSE(std::exchange(done[early], 1)) << "waited for twice";
      }
      bool any = false;
      for (u64 early = 0; early < late; ++early)
        if (meet(list[early], list[late])) {
          any = true;
          ASSERT_TRUE(done[early]) << "list " << i << ": " << late << " begins before " << early;
        }
      ASSERT_EQ(meets != copying::Dependence::none, any) << "list " << i << ", " << late;
      if (any) {
        ASSERT_LT(meets, late);
        ASSERT_TRUE(meet(list[meets], list[late]));
      }
    }
  }
}

// Half of the list reads a block, half writes a byte of it. In one order, then in the other.
TEST(Dependences, of_lists_that_meet_400_million_times_take_little_memory_and_time) {
  constexpr u32 half = 20'000;
  std::vector<u8> block(half);
  for (bool const reads_first : {true, false}) {
    std::vector<Segment> list;
    for (u32 i = 0; i < 2 * half; ++i) {
      bool const reads = (i < half) == reads_first;
      auto* const other = reinterpret_cast<u8*>(u64{1} << 40) + u64{i} * half;
      if (reads) list.push_back({other, block.data(), Bytes{half}});
      else list.push_back({block.data() + i % half, other, Bytes{1}});
    }
    auto const begin = std::chrono::steady_clock::now();
    auto const all = copying::dependences(list);
    // About 50 ms; sanitizers and busy machines take longer.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    u64 waits = 0, met = 0;
    for (auto const& [meets, after] : all) {
      waits += after.capacity();
      met += static_cast<u64>(meets != copying::Dependence::none);
    }
    EXPECT_EQ(met, half);
    EXPECT_LT(waits, 4u * half);
  }
}

TEST(Batch, of_random_overlapping_copies_is_that_of_the_list_in_order) {
  std::mt19937_64 random(test::new_seed());
  for (auto const& where : test::all_places())
    for (u64 const size : {u64{300}, u64{700'000}})
      for (int i = 0; i < 15; ++i) {
        Memory memory(where, size);
        auto wanted = random_data(random, size);
        memory.put(wanted);
        auto const list = random_segments(memory.data(), size, 1 + random() % 20, random);
        for (auto const& one : list)
          std::memmove(wanted.data() + (static_cast<u8*>(one.target) - memory.data()),
                       wanted.data() + (static_cast<u8 const*>(one.source) - memory.data()),
                       one.size);
        auto under_way = copy_batch(list);
        if (i % 3 == 0) under_way.event()->wait();
        under_way.wait();
        ASSERT_TRUE(memory.get() == wanted)
            << where.name() << " " << name_of(list[0], memory.data());
      }
}

TEST(Batch, between_streams_is_in_order_too) {
  std::mt19937_64 random(test::new_seed());
  u64 const size = 400'000;
  for (auto const& where : test::all_places()) {
    auto const stream = copy_devices().front()->make_stream();
    Memory memory(where, size), before({0, MemoryKind::pinned, false}, size);
    auto wanted = random_data(random, size);
    before.put(wanted);
    memory.fill(0);
    auto const list = random_segments(memory.data(), size, 12, random);
    for (auto const& one : list)
      std::memmove(wanted.data() + (static_cast<u8*>(one.target) - memory.data()),
                   wanted.data() + (static_cast<u8 const*>(one.source) - memory.data()), one.size);
    stream->copy(memory.data(), before.data(), Bytes{size});
    auto under_way = copy_batch(list, {Overlap::order, {stream.get()}});
    stream->copy(before.data(), memory.data(), Bytes{size});
    stream->synchronize();
    under_way.wait();
    EXPECT_TRUE(before.get() == wanted) << where.name();
  }
}

TEST(Batch, of_many_independent_copies_all_arrive) {
  std::mt19937_64 random(test::new_seed());
  auto const places = test::all_places();
  std::vector<Memory> sources, targets;
  std::vector<std::vector<u8>> wanted;
  std::vector<Segment> list;
  for (auto const& from : places)
    for (auto const& to : places) {
      u64 const size = random() % 200'000;
      sources.emplace_back(from, size + 1), targets.emplace_back(to, size + 1);
      wanted.push_back(random_data(random, size + 1));
      sources.back().put(wanted.back());
      list.push_back({targets.back().data(), sources.back().data(), Bytes{size + 1}});
    }
  copy_batch(list, {Overlap::refuse, {}}).wait();
  for (u64 i = 0; i < list.size(); ++i) EXPECT_TRUE(targets[i].get() == wanted[i]) << i;
}

TEST(Batch, with_overlaps_is_refused_by_name_if_asked_and_changes_nothing) {
  std::vector<u8> memory(100, 1);
  auto* const at = memory.data();
  std::vector<Segment> const list{{at, at + 50, Bytes{10}},
                                  {nullptr, nullptr, Bytes{0}},
                                  {at + 20, at + 60, Bytes{10}},
                                  {at + 70, at + 25, Bytes{1}}};
  EXPECT_TRUE(says(error_of([&] { copy_batch(list, {Overlap::refuse, {}}); }), Kind::bad_argument,
                   {"copy_batch", "entries 2 (10 bytes", "and 3 (1 bytes", "Overlap::order"}));
  EXPECT_EQ(memory, std::vector<u8>(100, 1));
  copy_batch(std::span(list).first(3), {Overlap::refuse, {}}).wait();
  // The same source twice is no overlap.
  std::vector<Segment> const twice{{at, at + 50, Bytes{10}}, {at + 10, at + 50, Bytes{10}}};
  copy_batch(twice, {Overlap::refuse, {}}).wait();
}

TEST(Batch, with_a_bad_entry_is_refused_by_its_number_before_anything_moves) {
  std::vector<u8> from(10, 1), to(10, 2);
  std::vector<Segment> const list{{to.data(), from.data(), Bytes{10}},
                                  {nullptr, from.data(), Bytes{3}}};
  EXPECT_TRUE(says(error_of([&] { copy_batch(list); }), Kind::bad_argument,
                   {"copy_batch, entry 1", "the target", "null pointer"}));
  EXPECT_EQ(to, std::vector<u8>(10, 2));
}

}  // namespace
}  // namespace meshpost
