#include "meshpost/base/error.hpp"

#include <gtest/gtest.h>

namespace meshpost {
namespace {

TEST(Error, reads_as_operation_cause_remedy_and_kind) {
  Error const error(Kind::deadlock, "wait(tag 7)", "nobody is left", "send it");
  EXPECT_STREQ(error.what(), "wait(tag 7): nobody is left; send it [deadlock]");
  EXPECT_EQ(error.kind(), Kind::deadlock);
  EXPECT_EQ(error.operation(), "wait(tag 7)");
  EXPECT_EQ(error.cause(), "nobody is left");
  EXPECT_EQ(error.remedy(), "send it");
}

TEST(Error, without_a_remedy_has_no_dangling_semicolon) {
  EXPECT_STREQ(Error(Kind::misuse, "a", "b", "").what(), "a: b [misuse]");
}

TEST(Error, has_a_name_for_every_kind) {
  for (auto kind = Kind::bad_argument; kind <= Kind::version_mismatch;
       kind = static_cast<Kind>(static_cast<int>(kind) + 1))
    EXPECT_NE(to_string(kind), "unknown kind");
  EXPECT_EQ(to_string(static_cast<Kind>(99)), "unknown kind");
}

TEST(Error, can_be_copied_and_caught_as_a_std_exception) {
  try {
    Error const error(Kind::misuse, "a", "b", "c");
    throw Error(error);
  } catch (std::exception const& error) {
    EXPECT_STREQ(error.what(), "a: b; c [misuse]");
  }
}

}  // namespace
}  // namespace meshpost
