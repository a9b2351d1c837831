// Copies between all kinds of memory: every byte arrives, and no byte beside them changes.
#include <algorithm>
#include <thread>

#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::all_places;
using test::copy_devices;
using test::error_of;
using test::Memory;
using test::random_data;
using test::says;

constexpr u8 poison = 0xa5;

// Copies `size` bytes from `from` + 3 to `to` + 5, with poison around them.
void check_copy(test::Where from, test::Where to, u64 size, std::mt19937_64& random) {
  Memory source(from, size + 16), target(to, size + 16);
  auto const bytes = random_data(random, size + 16);
  source.put(bytes);
  target.fill(poison);
  copy(target.data() + 5, source.data() + 3, Bytes{size});
  auto wanted = std::vector<u8>(size + 16, poison);
  std::memcpy(wanted.data() + 5, bytes.data() + 3, size);
  auto const got = target.get();
  ASSERT_TRUE(got == wanted) << from.name() << " to " << to.name() << ", " << size
                             << " bytes: byte "
                             << std::ranges::mismatch(got, wanted).in1 - got.begin();
  ASSERT_EQ(source.get(), bytes) << "the source must stay as it is";
}

TEST(Copy, between_all_pairs_of_places_moves_every_byte_and_no_other) {
  std::mt19937_64 random(test::new_seed());
  for (auto const& from : all_places())
    for (auto const& to : all_places())
      for (u64 const size :
           std::vector<u64>{0, 1, 8, 4095, 65536, 65537, random() % 300'000, (u64{1} << 20) + 1})
        check_copy(from, to, size, random);
}

TEST(Copy, of_sizes_around_chunks_is_whole) {
  std::mt19937_64 random(test::new_seed());
  auto const places = all_places();
  for (u64 const size : {(u64{4} << 20) - 1, (u64{8} << 20) + 1, (u64{33} << 20) + 4097}) {
    auto const from = places[random() % places.size()];
    auto const to = places[random() % places.size()];
    check_copy(from, to, size, random);
    check_copy(places[0], places[1], size, random);
    check_copy(places[1], places[0], size, random);
  }
}

TEST(Copy, of_spans_checks_their_lengths) {
  std::vector<double> const from{1, 2, 3};
  std::vector<double> to(3);
  copy(std::span(to), from);
  EXPECT_EQ(to, from);
  EXPECT_TRUE(says(error_of([&] { copy(std::span(to).first(2), from); }), Kind::bad_argument,
                   {"2 elements", "the source 3"}));
}

TEST(Copy, of_nothing_is_legal_with_any_pointers) {
  int word = 0;
  auto* const nonsense = reinterpret_cast<void*>(u64{0x10});
  copy(nullptr, nullptr, Bytes{0});
  copy(nonsense, &word, Bytes{0});
  copy(&word, &word, Bytes{0});
  EXPECT_TRUE(copy_async(nullptr, nonsense, Bytes{0}).done());
  std::vector<Segment> const none{{nullptr, nonsense, Bytes{0}}};
  copy_batch(none).wait();
  copy_batch({}).wait();
  copy_async(nullptr, Pitch{}, nullptr, Pitch{}, BlockShape{Bytes{0}, 5, 5}).wait();
  copy_async(nullptr, Pitch{}, nullptr, Pitch{}, BlockShape{Bytes{5}, 0, 5}).wait();
}

TEST(Copy, is_waited_for_when_it_is_dropped) {
  std::mt19937_64 random(test::new_seed());
  Memory source({0, MemoryKind::device, false}, 20'000'000), target(all_places()[0], 20'000'000);
  auto const bytes = random_data(random, source.size());
  source.put(bytes);
  {
    auto const dropped = copy_async(target.data(), source.data(), Bytes{source.size()});
  }
  EXPECT_EQ(target.get(), bytes);
}

TEST(Copy, moves_and_may_be_asked_often) {
  Memory source({0, MemoryKind::device, false}, 100'000), target(all_places()[0], 100'000);
  source.fill(7);
  auto one = copy_async(target.data(), source.data(), Bytes{100'000});
  auto two = std::move(one);
  two.wait();
  two.wait();
  EXPECT_TRUE(two.done());
  EXPECT_TRUE(two.event()->done());
  EXPECT_EQ(target.get(), std::vector<u8>(100'000, 7));
}

TEST(Copy, by_many_threads_at_once_is_whole) {
  u64 const seed = test::new_seed();
  auto const places = all_places();
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 30; ++i)
        check_copy(places[random() % places.size()], places[random() % places.size()],
                   random() % (u64{1} << (4 + random() % 18)), random);
    });
  for (auto& thread : threads) thread.join();
}

TEST(Copy, begins_after_streams_and_they_go_on_after_it) {
  std::mt19937_64 random(test::new_seed());
  u64 const size = 3'000'001;
  auto bytes = random_data(random, size);
  for (auto const& from : all_places())
    for (auto const& to : all_places()) {
      auto const first = copy_devices().front()->make_stream();
      auto const second = copy_devices().back()->make_stream();
      Memory source(from, size), target(to, size), before({0, MemoryKind::pinned, false}, size),
          after({0, MemoryKind::pinned, false}, size);
      test::complement(bytes.data(), bytes.data(), size);  // not what staging buffers still have
      before.put(bytes);
      source.fill(1), target.fill(2), after.fill(3);
      first->copy(source.data(), before.data(), Bytes{size});
      auto under_way =
          copy_async(target.data(), source.data(), Bytes{size}, {{first.get(), second.get()}});
      second->copy(after.data(), target.data(), Bytes{size});
      second->synchronize();
      EXPECT_TRUE(after.get() == bytes) << from.name() << " to " << to.name();
      under_way.wait();
      EXPECT_TRUE(target.get() == bytes) << from.name() << " to " << to.name();
      first->synchronize();
    }
}

TEST(Copy, of_nothing_comes_between_streams_all_the_same) {
  auto const first = copy_devices().front()->make_stream();
  auto const second = copy_devices().back()->make_stream();
  Memory big({0, MemoryKind::device, false}, 50'000'000), flag({0, MemoryKind::pinned, false}, 8);
  flag.fill(0);
  first->fill(big.data(), 1, Bytes{big.size()});
  first->fill(flag.data(), 9, Bytes{8});
  copy_async(nullptr, nullptr, Bytes{0}, {{first.get(), second.get()}}).event();
  second->synchronize();
  EXPECT_EQ(flag.get(), std::vector<u8>(8, 9));
}

}  // namespace
}  // namespace meshpost
