// Names of places.
#include "meshpost/fabric/place.hpp"

#include "support/errors.hpp"

namespace meshpost {
namespace {

TEST(Place, is_named_by_kind_and_number) {
  for (auto const* const name : {"pageable:0", "pinned:1", "cuda:17", "cpu:4294967295"})
    EXPECT_EQ(parse_place(name).name(), name);
  EXPECT_EQ(parse_place("cuda:3"), (Place{"cuda", 3}));
  EXPECT_TRUE(parse_place("pinned:0").on_host());
  EXPECT_FALSE(parse_place("cpu:0").on_host());
}

TEST(Place, in_the_hosts_memory_is_known_by_kind) {
  for (auto const* const name : {"pageable:0", "pinned:1", "cpu:2"})
    EXPECT_TRUE(in_host_memory(parse_place(name))) << name;
  for (auto const* const name : {"cuda:0", "unknown:0"})  // for any kinds in this build
    EXPECT_FALSE(in_host_memory(parse_place(name))) << name;
}

TEST(Place, of_any_other_form_is_refused) {
  for (auto const* const name : {"", ":", "cuda", "cuda:", ":1", "cuda:x", "cuda:-1", "cuda: 1",
                                 "cuda:1 ", "cuda:4294967296", "Cuda:1", "cu da:1", "cuda:1:2",
                                 "cuda:0x1", "cuda:99999999999999999999"})
    EXPECT_TRUE(test::says(test::error_of([&] { parse_place(name); }), Kind::bad_argument,
                           {std::string("'") + name + "'", "write pageable:0"}));
}

}  // namespace
}  // namespace meshpost
