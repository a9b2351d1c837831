#pragma once
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "meshpost/base/error.hpp"
#include "net/out_of_band.hpp"

namespace meshpost::test {

/// One end of an out-of-band connection within a process. One thread.
struct DirectOutOfBand final : net::OutOfBand {
  void tell(u32 peer, std::string const& bytes) override {
    EXPECT_LT(peer, 2u);
    if (broken) throw Error(Kind::peer_lost, "test", "the bootstrap is gone", "");
    if (peer != self) other->come.push_back({self, bytes});
    ++told;
  }
  std::vector<Notice> take() override { return std::exchange(come, {}); }
  u32 self = 0, told = 0;
  bool broken = false;
  DirectOutOfBand* other = nullptr;
  std::vector<Notice> come;
};

}  // namespace meshpost::test
