// An error for each wrong strided piece: it has the numbers and a remedy.
#include "support/misuse.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

enum class Wrong {
  extents,
  source_size,
  target_size,
  source_reach,
  target_reach,
  target_span,
  source_wraps,
  target_wraps,
  offset_wraps,
  subarray,
  grid,
  stride_of_zero,
  rows_too_near,
  tag,
  rank,
  null_source,
  local_subspan,
  remote_subspan,
  counters
};

struct Misuse {
  Wrong wrong;
  Window<u32> window;  // 24 elements, 2 tags
  static constexpr u64 huge = ~u64{0};
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 1) return;
    auto const mine = window.local(self);
    auto const there = window.at(RankId{0});
    auto const grid = StridedLayout::dense({4, 3, 2});
    auto const face = grid.subarray({1, 0, 0}, {1, 3, 2});
    auto const column = [](u64 count, u64 stride) {
      return StridedLayout{.extents = {1, count}, .strides = {1, stride}};
    };
    switch (wrong) {
      case Wrong::extents:
        return self.put(there.strided(face), mine.strided(grid.subarray({1, 0, 0}, {1, 2, 2})));
      case Wrong::source_size: return self.put(there.strided(face), mine);
      case Wrong::target_size: return self.put(there.subspan(0, 5), mine.strided(face));
      case Wrong::source_reach: return self.put(there, mine.strided(column(3, 12)));
      case Wrong::target_reach:
        return self.put_notify(window.at(RankId{0}, 1).strided(column(3, 12)), mine.subspan(0, 3),
                               Tag{0});
      case Wrong::target_span:
        return self.put(there.subspan(4, 8).strided(face), mine.strided(face));
      case Wrong::source_wraps: return self.put(there, mine.strided(column(3, huge / 2 + 1)));
      case Wrong::target_wraps:
        return self.put(there.strided(column(3, huge / 2 + 1)), mine.subspan(0, 3));
      case Wrong::offset_wraps:
        return self.put(window.at(RankId{0}, huge - 4).strided(column(3, 2)), mine.subspan(0, 3));
      case Wrong::subarray:
        return self.put(there, mine.strided(grid.subarray({4, 0, 0}, {1, 3, 2})));
      case Wrong::grid:
        return self.put(there.strided(StridedLayout::dense({huge / 2, 3}).subarray({}, {1, 3})),
                        mine.subspan(0, 3));
      case Wrong::stride_of_zero: return self.put(there.strided(column(3, 0)), mine.subspan(0, 3));
      case Wrong::rows_too_near:
        return self.put(there.strided({.extents = {4, 3}, .strides = {1, 3}}), mine.subspan(0, 12));
      case Wrong::tag: return self.put_notify(there, mine.strided(face), Tag{2});
      case Wrong::rank: return self.put_notify(window.at(RankId{9}), mine.strided(face), Tag{0});
      case Wrong::null_source:
        return self.put(there, LocalSpan<u32 const>(nullptr, 24).strided(face));
      case Wrong::local_subspan: return self.put(there, mine.subspan(20, 5).strided({}));
      case Wrong::remote_subspan:
        return self.put(there.subspan(0, 4).subspan(4, 1).strided({}), mine.subspan(0, 1));
      case Wrong::counters:
        return self.put_notify(there, mine.strided(face), Window<u32>(), Tag{0});
    }
  }
};

using Case = test::MisuseCase<Wrong>;

class StridedMisuse : public testing::TestWithParam<Case> {};
std::vector<Case> cases() {
  return {
      {Wrong::extents,
       "extents_that_differ",
       {"put, window 'box', in", "the target has 3 elements in y, the source 2", "same extents"}},
      {Wrong::source_size,
       "a_packed_source_of_another_size",
       {"put, window 'box', in", "24 elements were given where 6 fit", "fitting sizes"}},
      {Wrong::target_size,
       "a_packed_target_that_is_too_small",
       {"put, window 'box', in", "target's layout reaches over 6 elements of a span that has 5",
        "larger span"}},
      {Wrong::source_reach,
       "a_layout_that_leaves_the_source",
       {"put, window 'box', in", "source's layout reaches over 25 elements of a span that has 24",
        "strides"}},
      {Wrong::target_reach,
       "a_layout_that_leaves_the_window",
       {"put_notify, window 'box', in", "elements 1 to 25", "part of 24", "larger window"}},
      {Wrong::target_span,
       "a_layout_that_leaves_the_targets_span",
       {"put, window 'box', in", "target's layout reaches over 22 elements of a span that has 8"}},
      {Wrong::source_wraps,
       "a_source_beyond_2_to_the_64",
       {"put, window 'box', in", "source's layout reaches over more than there are"}},
      {Wrong::target_wraps, "a_target_beyond_2_to_the_64", {"put, window 'box', in", "part of 24"}},
      {Wrong::offset_wraps,
       "an_offset_that_would_wrap_round",
       {"put, window 'box', in", "elements 18446744073709551611 to 18446744073709551615",
        "part of 24"}},
      {Wrong::subarray,
       "a_subarray_that_leaves_its_grid",
       {"put, window 'box', in", "subarray that leaves its bounds", "offset and extents"}},
      {Wrong::grid,
       "a_grid_that_no_memory_holds",
       {"put, window 'box', in", "2^64 elements or more"}},
      {Wrong::stride_of_zero,
       "a_target_with_a_stride_of_0",
       {"put, window 'box', in", "target's strides 1, 0 and 0 let elements lie on",
        "make each stride larger"}},
      {Wrong::rows_too_near,
       "a_target_whose_rows_overlap",
       {"put, window 'box', in", "target's strides 1, 3 and 0 let elements lie on",
        "make each stride larger"}},
      {Wrong::tag,
       "a_tag",
       {"put_notify, window 'box', in", "tag 2 does not exist", "use tags from 0 to 1"}},
      {Wrong::rank,
       "a_rank",
       {"put_notify, window 'box', in", "rank 9 does not exist", "use ranks from 0 to 3"}},
      {Wrong::null_source,
       "a_null_source",
       {"put, window 'box', in", "24 elements", "null pointer"}},
      {Wrong::local_subspan,
       "a_local_subspan",
       {"put, window 'box', in", "subspan that leaves its span"}},
      {Wrong::remote_subspan,
       "a_remote_subspan",
       {"put, window 'box', in", "subspan that leaves its span"}},
      {Wrong::counters, "counters_of_no_window", {"put_notify", "never created"}},
  };
}
INSTANTIATE_TEST_SUITE_P(Kernels, StridedMisuse, testing::ValuesIn(cases()),
                         test::misuse_name<Wrong>);

TEST_P(StridedMisuse, is_named_with_its_limit_and_a_remedy) {
  test::Listener const listener;
  World world(test::options(4, test::devices(test::Spread::one_device)));
  auto const window = world.window<u32>(24, Tags{2}, "box");
  auto const error = error_of([&] { world.run(Misuse{GetParam().wrong, window}); });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"Misuse", "rank 1 ("}));
  GetParam().expect_named_in(error);
}

}  // namespace
}  // namespace meshpost
