#pragma once
#include <gtest/gtest.h>

#include <string>

#include "meshpost/compat/coaccel.h"
#include "support/worlds.hpp"

namespace meshpost::test {

inline std::string name_of_device(int i) {
  return on_gpus() ? "cuda:0" : "cpu:" + std::to_string(i);
}

/// Memory of the host of both kinds, and a device.
struct Coaccel : testing::Test {
  coaccel_device host = coaccel_device_open("pageable"), pinned = coaccel_device_open("pinned"),
                 device = coaccel_device_open(name_of_device(1).c_str());
  void SetUp() override { ASSERT_TRUE(host && pinned && device) << coaccel_last_error(); }
  void TearDown() override {
    EXPECT_STREQ(coaccel_last_error(), nullptr);
    for (auto const one : {host, pinned, device}) coaccel_device_close(one);
  }
};

/// Expects that the last call on this thread failed, with `piece` in its message.
inline void expect_error(std::string const& piece) {
  char const* const text = coaccel_last_error();
  ASSERT_NE(text, nullptr) << "no error that says " << piece;
  EXPECT_NE(std::string(text).find(piece), std::string::npos) << text;
}

}  // namespace meshpost::test
