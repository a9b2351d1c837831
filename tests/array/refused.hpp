#pragma once
#include "support/errors.hpp"

namespace meshpost::test {

/// Fails the test unless `work` throws Error(bad_argument) with all these pieces.
template <class Work>
void expect_refused(Work&& work, std::initializer_list<std::string_view> pieces) {
  EXPECT_TRUE(says(error_of(work), Kind::bad_argument, pieces));
}

}  // namespace meshpost::test
