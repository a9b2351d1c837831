// A rank leaves a failed run and frees memory that the host's proxy was about to read or write.
#include "support/withdrawn.hpp"

#include "base/host_hooks.hpp"
#include "support/errors.hpp"
#include "support/everything.hpp"

namespace meshpost {
namespace {

class Withdrawn : public testing::TestWithParam<bool> {};

TEST_P(Withdrawn, memory_of_a_rank_that_left_is_not_touched) {
  bool const gets = GetParam();
  auto options = test::options(2, "cpu:2");
  options.apart = true;
  options.workers = 1;
  World world(options);
  auto const window = world.window<char>(test::Pages::size, Tags{1}, "far");
  test::Moments moments;
  hooks::install_host_hook([&](std::string_view place) {
    if (place == test::FreesWhatIsUnderWay::place(gets)) moments.meet();
  });
  auto const error =
      test::error_of([&] { world.run(test::FreesWhatIsUnderWay{window, gets, &moments}); });
  hooks::install_host_hook(nullptr);
  EXPECT_TRUE(test::says(error, Kind::kernel_failed, {"rank 1", "the input is odd"}));
  EXPECT_TRUE(moments.freed);
  test::try_everything(world);
}

INSTANTIATE_TEST_SUITE_P(CpuOnly, Withdrawn, testing::Bool(),
                         [](auto const& chosen) { return chosen.param ? "by_a_get" : "by_a_put"; });

}  // namespace
}  // namespace meshpost
