// Batches give what their copies give one after the other.
#include <algorithm>
#include <cstring>

#include "copy/overlap.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::copy_devices;
using test::error_of;
using test::Memory;
using test::random_bytes;
using test::says;

std::string name_of(Segment const& segment, u8 const* base) {
  return std::to_string(static_cast<u8 const*>(segment.source) - base) + "+" +
         std::to_string(segment.size.value) + " to " +
         std::to_string(static_cast<u8*>(segment.target) - base);
}

// Random copies within one piece of memory, each not overlapping itself.
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

TEST(Dependences, are_those_of_the_list_in_order) {
  std::mt19937_64 random(test::new_seed());
  std::vector<u8> memory(64);
  for (int i = 0; i < 3000; ++i) {
    auto const list = random_segments(memory.data(), 64, 1 + random() % 12, random);
    auto const after = copying::dependences(list);
    u64 const n = list.size();
    // Reachability must be that of all pairs that meet.
    auto const reach = [n](std::vector<std::vector<char>> edges) {
      for (u64 k = 0; k < n; ++k)
        for (u64 a = 0; a < n; ++a)
          for (u64 b = 0; b < n; ++b) edges[a][b] |= static_cast<char>(edges[a][k] && edges[k][b]);
      return edges;
    };
    std::vector<std::vector<char>> wanted(n, std::vector<char>(n)), got = wanted;
    auto const meet = [](void const* a, u64 m, void const* b, u64 k) {
      auto const *x = static_cast<u8 const*>(a), *y = static_cast<u8 const*>(b);
      return m > 0 && k > 0 && x < y + k && y < x + m;
    };
    for (u64 late = 0; late < n; ++late) {
      for (u64 early = 0; early < late; ++early) {
        auto const &a = list[early], &b = list[late];
        wanted[late][early] =
            meet(a.target, a.size, b.target, b.size) || meet(a.target, a.size, b.source, b.size) ||
            meet(a.source, a.size, b.target, b.size);
      }
      for (u32 const early : after[late]) {
        ASSERT_LT(early, late);
        got[late][early] = 1;
        ASSERT_TRUE(wanted[late][early]) << "they don't meet";
      }
    }
    ASSERT_EQ(reach(got), reach(wanted)) << "list " << i;
  }
}

TEST(Batch, of_random_overlapping_copies_is_that_of_the_list_in_order) {
  std::mt19937_64 random(test::new_seed());
  for (auto const& where : test::all_places())
    for (u64 const size : {u64{300}, u64{700'000}})
      for (int i = 0; i < 15; ++i) {
        Memory memory(where, size);
        auto wanted = random_bytes(random, size);
        memory.put(wanted);
        auto const list = random_segments(memory.data(), size, 1 + random() % 20, random);
        for (auto const& one : list)
          std::memmove(wanted.data() + (static_cast<u8*>(one.target) - memory.data()),
                       wanted.data() + (static_cast<u8 const*>(one.source) - memory.data()),
                       one.size);
        auto under_way = copy_batch(list);
        if (i % 3 == 0) under_way.event()->wait();
        under_way.wait();
        ASSERT_TRUE(memory.get() == wanted) << where.name() << " " << name_of(list[0], memory.data());
      }
}

TEST(Batch, between_streams_is_in_order_too) {
  std::mt19937_64 random(test::new_seed());
  u64 const size = 400'000;
  for (auto const& where : test::all_places()) {
    auto const stream = copy_devices().front()->make_stream();
    Memory memory(where, size), before({0, MemoryKind::pinned, false}, size);
    auto wanted = random_bytes(random, size);
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
      wanted.push_back(random_bytes(random, size + 1));
      sources.back().put(wanted.back());
      list.push_back({targets.back().data(), sources.back().data(), Bytes{size + 1}});
    }
  copy_batch(list, {Overlap::refuse, {}}).wait();
  for (u64 i = 0; i < list.size(); ++i) EXPECT_TRUE(targets[i].get() == wanted[i]) << i;
}

TEST(Batch, with_overlaps_is_refused_by_name_if_asked_and_changes_nothing) {
  std::vector<u8> memory(100, 1);
  auto* const at = memory.data();
  std::vector<Segment> const list{{at, at + 50, Bytes{10}}, {nullptr, nullptr, Bytes{0}},
                                  {at + 20, at + 60, Bytes{10}}, {at + 70, at + 25, Bytes{1}}};
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
  std::vector<Segment> const list{{to.data(), from.data(), Bytes{10}}, {nullptr, from.data(), Bytes{3}}};
  EXPECT_TRUE(says(error_of([&] { copy_batch(list); }), Kind::bad_argument,
                   {"copy_batch, entry 1", "the target", "null pointer"}));
  EXPECT_EQ(to, std::vector<u8>(10, 2));
}

}  // namespace
}  // namespace meshpost
