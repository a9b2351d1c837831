// Every size and alignment of a copy: nothing is missing, nothing beside it is touched.
#include "support/worlds.hpp"

namespace meshpost {
namespace {

constexpr u32 margin = 32;  // poisoned bytes on either side of a target
constexpr u8 poison = 0xee;

MESHPOST_FN u8 byte_at(u64 size, u64 i) { return static_cast<u8>(i * 31 + size * 17 + (i >> 8)); }

// Rank 0 sends to `receiver`, which checks, poisons anew and answers.
struct Copies {
  Window<u8> window;
  test::Findings findings;
  u32 receiver;
  u64 first, last, step;  // sizes
  u32 offsets, offset_step;

  MESHPOST_FN void exchange(Rank& self, u64 size, u32 from, u32 to) const {
    auto const mine = window.local(self);
    if (self.id() == 0) {
      self.each(size, [&](u64 i) { mine[from + i] = byte_at(size, i); });
      self.put_notify(window.at(RankId{receiver}, margin + to), mine.subspan(from, size), Tag{0});
      self.wait(window, Tag{1});
    } else if (self.id() == receiver) {
      self.wait(window, Tag{0});
      u64 const begin = margin + to;
      self.each(size + 2 * margin, [&](u64 i) {
        u64 const at = i + to;
        bool const inside = at >= begin && at < begin + size;
        findings.add(self, mine[at] != (inside ? byte_at(size, at - begin) : poison));
        mine[at] = poison;
      });
      self.notify(window, RankId{0}, Tag{1});
    }
  }
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == receiver) {
      auto const mine = window.local(self);
      self.each(mine.size(), [&](u64 i) { mine[i] = poison; });
    }
    self.barrier();
    for (u64 size = first; size <= last; size += step)
      for (u32 from = 0; from < offsets; from += offset_step)
        for (u32 to = 0; to < offsets; to += offset_step) exchange(self, size, from, to);
  }
};

class Copy : public testing::TestWithParam<test::Shape> {
 protected:
  void check(u64 first, u64 last, u64 step, u32 offsets, u32 offset_step) {
    World world(test::options(GetParam().ranks, test::devices(GetParam().spread)));
    auto const findings = test::make_findings(world);
    auto const window = world.window<u8>(last + 2 * margin + 32, Tags{2});
    // To the last rank: of the same device, or of another.
    world.run(Copies{window, findings, world.size() - 1, first, last, step, offsets, offset_step},
              test::launch_of(GetParam()));
    EXPECT_EQ(test::total(world, findings), 0u);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Copy,
                         testing::Values(test::Shape{test::Spread::one_device, 2, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 2, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 2, {7, 1, 1}},
                                         test::Shape{test::Spread::one_device, 2, {32, 1, 1}}),
                         test::shape_name);

TEST_P(Copy, is_exact_for_every_small_size_and_alignment) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  check(1, 257, 16, 17, 2);  // the result is the same; this test looks for accesses beside it
#else
  check(1, 257, 1, 17, 1);
#endif
}
TEST_P(Copy, is_exact_for_sizes_around_a_page) { check(4090, 4102, 1, 17, 5); }
TEST_P(Copy, is_exact_for_large_sizes) {
  u32 const step = test::sanitized ? 4 : 1;
  check((1 << 20) - 1, (1 << 20) + 3, step, 5, 3);
}

}  // namespace
}  // namespace meshpost
