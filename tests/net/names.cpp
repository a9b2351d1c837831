#include <gtest/gtest.h>

#include "net/engine.hpp"
#include "support/errors.hpp"

namespace meshpost::net {
namespace {

using meshpost::test::error_of;
using meshpost::test::says;

TEST(MakeEngine, says_which_engines_there_are) {
  auto const error = error_of([] { make_engine("ucx", ""); });
  EXPECT_TRUE(says(error, Kind::bad_environment, {"'ucx'", "ofi"}));
}

TEST(MakeEngine, wants_a_seed_to_shuffle) {
  for (auto const* name : {"shuffled", "shuffled:ofi", "shuffled:7ofi"})
    EXPECT_TRUE(says(error_of([&] { make_engine(name, ""); }), Kind::bad_environment, {"a seed"}));
}

TEST(MakeEngine, wants_a_fault_and_a_seed_for_one_that_is_faulty) {
  for (auto const* name : {"faulty", "faulty:flop:7:ofi"})
    EXPECT_TRUE(says(error_of([&] { make_engine(name, ""); }), Kind::bad_environment,
                     {"no such fault", "flip, truncate, duplicate, drop, lose or hang"}));
  for (auto const* name : {"faulty:flip", "faulty:flip:ofi"})
    EXPECT_TRUE(says(error_of([&] { make_engine(name, ""); }), Kind::bad_environment, {"a seed"}));
}

}  // namespace
}  // namespace meshpost::net
