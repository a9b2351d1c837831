// The record of puts in flight, compared with a list that keeps everything.
#include "rma/via/proxy/undelivered.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace meshpost::detail {
namespace {

using By = Undelivered::By;

TEST(Undelivered, knows_what_is_under_way_to_each_byte) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto const below = [&](u64 limit) { return random() % limit; };
  for (u32 round = 0; round < 50; ++round) {
    Undelivered undelivered;
    struct Put {
      u32 sequence, device;
      u64 begin, end;
      By by;
    };
    std::vector<Put> puts;
    u32 sequence = static_cast<u32>(0) - 40, delivered = sequence;  // they wrap
    for (u32 step = 0; step < 200; ++step) {
      u32 const device = static_cast<u32>(below(2));
      u64 const begin = below(64), size = below(20);
      if (below(3) == 0) {
        // News may be old.
        u32 const news = sequence - static_cast<u32>(below(12));
        if (static_cast<i32>(news - delivered) > 0) delivered = news;
        undelivered.delivered_before(news);
      } else {
        auto const by = below(2) == 0 ? By::message : By::write;
        undelivered.add(sequence, {device, begin, size}, by);
        puts.push_back({sequence++, device, begin, begin + size, by});
      }
      u64 const at = below(64), bytes = 1 + below(10);
      auto right = By::nobody;
      for (auto const& put : puts)
        for (u64 byte = at; byte < at + bytes; ++byte)
          if (static_cast<i32>(put.sequence - delivered) >= 0 && put.device == device &&
              byte >= put.begin && byte < put.end)
            right = std::max(right, put.by);
      ASSERT_EQ(undelivered.in({device, at, bytes}), right);
    }
  }
}

// Then it may report delivered bytes as in flight, but never the reverse.
TEST(Undelivered, knows_of_very_many_no_less_than_there_is) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Undelivered undelivered;
  std::vector<Undelivered::Range> puts;
  std::vector<By> by;
  u32 const first = static_cast<u32>(0) - 1000;  // they wrap
  for (u32 i = 0; i < 3 * Undelivered::most; ++i) {
    puts.push_back({static_cast<u32>(random() % 2), random() % 100'000, 1 + random() % 8});
    by.push_back(random() % 2 == 0 ? By::message : By::write);
    undelivered.add(first + i, puts.back(), by.back());
  }
  u32 const delivered = 2 * Undelivered::most;
  undelivered.delivered_before(first + delivered);
  for (u32 i = delivered; i < puts.size(); ++i) ASSERT_GE(undelivered.in(puts[i]), by[i]) << i;
  EXPECT_EQ(undelivered.in({2, 0, 100'000}), By::nobody);
  undelivered.delivered_before(first + static_cast<u32>(puts.size()));
  EXPECT_EQ(undelivered.in({0, 0, 200'000}), By::nobody);
}

}  // namespace
}  // namespace meshpost::detail
