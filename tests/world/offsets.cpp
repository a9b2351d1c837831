#include "meshpost/world/offsets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace meshpost {
namespace {

TEST(Offsets, hand_out_what_they_got_and_join_what_comes_back) {
  Offsets offsets;
  offsets.add(0, 1000);
  auto const a = offsets.take(100), b = offsets.take(100), c = offsets.take(800);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 100u);
  EXPECT_EQ(c, 200u);
  EXPECT_FALSE(offsets.take(1));
  offsets.give(100, 100);
  EXPECT_FALSE(offsets.take(101));
  offsets.give(0, 100);
  EXPECT_EQ(offsets.take(200), 0u);
  offsets.give(200, 800);
  offsets.give(0, 200);
  EXPECT_EQ(offsets.take(1000), 0u);
}

TEST(Offsets, join_pieces_that_are_added_one_after_the_other) {
  Offsets offsets;
  offsets.add(0, 100);
  offsets.add(100, 100);
  EXPECT_EQ(offsets.take(200), 0u);
}

TEST(Offsets, never_fit_more_than_there_is) {
  Offsets offsets;
  offsets.add(10, 100);
  EXPECT_FALSE(offsets.take(~u64{0}));
  EXPECT_FALSE(offsets.take(1, {u64{1} << 40}));
  EXPECT_EQ(offsets.take(10, {64}), 64u);
  EXPECT_EQ(offsets.free_bytes(), 90u);
}

// First fit, on an array of bytes.
class Bytewise {
 public:
  explicit Bytewise(u64 size) : taken_(size, true) {}
  void add(u64 offset, u64 size) {
    std::fill_n(taken_.begin() + static_cast<long>(offset), size, false);
  }
  std::optional<u64> take(u64 size, u64 alignment) {
    for (u64 at = 0; at + size <= taken_.size(); at += alignment) {
      auto const begin = taken_.begin() + static_cast<long>(at);
      if (std::find(begin, begin + static_cast<long>(size), true) !=
          begin + static_cast<long>(size))
        continue;
      std::fill_n(begin, size, true);
      return at;
    }
    return std::nullopt;
  }
  u64 free_bytes() const { return static_cast<u64>(std::ranges::count(taken_, false)); }

 private:
  std::vector<bool> taken_;
};

TEST(Offsets, agree_with_a_search_byte_by_byte) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int program = 0; program < 20; ++program) {
    constexpr u64 most = 2048;
    Offsets offsets;
    Bytewise oracle(most);
    u64 mapped = 0;
    struct Piece {
      u64 offset, size;
    };
    std::vector<Piece> pieces;
    for (int step = 0; step < 400; ++step) {
      u64 const what = random() % 10;
      if (what == 0 && mapped < most) {
        u64 const more = std::min<u64>(most - mapped, 1 + random() % 300);
        offsets.add(mapped, more);
        oracle.add(mapped, more);
        mapped += more;
      } else if (what < 6) {
        u64 const size = 1 + random() % 100, alignment = u64{1} << random() % 8;
        auto const got = offsets.take(size, {alignment});
        ASSERT_EQ(got, oracle.take(size, alignment)) << size << " aligned to " << alignment;
        if (got) pieces.push_back({*got, size});
      } else if (!pieces.empty()) {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        offsets.give(pieces.back().offset, pieces.back().size);
        oracle.add(pieces.back().offset, pieces.back().size);
        pieces.pop_back();
      }
      ASSERT_EQ(offsets.free_bytes(), oracle.free_bytes());
    }
  }
}

}  // namespace
}  // namespace meshpost
