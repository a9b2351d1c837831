#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/errors.hpp"

// Tables of errors that a kernel can make.

namespace meshpost::test {

/// An error of a kernel, and pieces of its message.
template <class Wrong>
struct MisuseCase {
  Wrong wrong;
  char const* name;
  std::vector<std::string> pieces;

  void expect_named_in(Error const& error) const {
    for (auto const& piece : pieces) EXPECT_TRUE(says(error, Kind::kernel_failed, {piece}));
  }
};

template <class Wrong>
std::string misuse_name(testing::TestParamInfo<MisuseCase<Wrong>> const& one) {
  return one.param.name;
}

}  // namespace meshpost::test
