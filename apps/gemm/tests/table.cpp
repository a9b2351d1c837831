#include <gtest/gtest.h>

#include "distances.hpp"
#include "meshpost/base/error.hpp"
#include "report.hpp"

namespace meshpost::gemm {
namespace {

TEST(GemmTable, has_medians_of_consecutive_sizes_by_their_power_of_two) {
  // 500 has no neighbour. 0: not square. 64 counts with 32.
  auto const rows = by_power_of_two({{64, 9, 4}, {63, 3, 2}, {65, 5, 4}, {500, 1, 1}, {0, 7, 7}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].power, 1u);
  EXPECT_EQ(rows[0].sizes, 2u);
  EXPECT_EQ(rows[0].gflops, 4);
  EXPECT_EQ(rows[0].alone, 3);
  EXPECT_EQ(rows[1].power, 32u);
  EXPECT_EQ(rows[1].gflops, 9);
  EXPECT_TRUE(by_power_of_two({{500, 1, 1}, {1000, 2, 2}}).empty());
}

TEST(GemmDistances, follow_measured_links_and_then_nodes) {
  LinkFrom const itself{.same_memory = true}, other_numa{.same_numa_node = false},
      other_host{.same_host = false};
  auto const link = [](double rate) { return LinkFrom{.rate = rate}; };
  // NVLink, measured with some noise; PCIe.
  EXPECT_EQ(distances_from({link(50e9), itself, link(390e9), link(400e9)}),
            (std::vector<u32>{2, 0, 1, 1}));
  EXPECT_EQ(distances_from({itself, other_host, other_numa, LinkFrom{}}),
            (std::vector<u32>{0, 3, 2, 1}));
  EXPECT_EQ(distances_from({itself, LinkFrom{}, link(1e9)}), (std::vector<u32>{0, 2, 1}));
}

TEST(GemmMemory, is_the_sum_over_devices_that_share_it) {
  auto const plan = make_plan({100, 100, 100, {2, 1}}, {1000, 2});
  // A, B and C have 5000 numbers a device, its buffer for B as many.
  std::vector<DeviceMemory> memories{{"one", 90000, 90000}, {"one", 90000, 85000}};
  auto const shared = memory_use(plan, blas::Type::float32, memories);
  EXPECT_EQ(shared.needed, 2 * 20000u * 4);
  EXPECT_EQ(shared.usable, 85000u);
  EXPECT_FALSE(shared.fits());
  memories[1].id = "other";
  auto const apart = memory_use(plan, blas::Type::float32, memories);
  EXPECT_EQ(apart.device, 1u);
  EXPECT_EQ(apart.needed, 20000u * 4);
  EXPECT_TRUE(apart.fits());
  EXPECT_FALSE(memory_use(plan, blas::Type::float32, memories, 10001).fits());
}

TEST(GemmMemory, the_largest_size_fits_and_the_next_does_not) {
  Options options;
  Participants all{{}, {}, {"a", "b"}, {{"a", 1 << 20, 1 << 20}, {"b", 1 << 20, 1 << 20}}};
  u64 const n = largest_size({2, 1}, options, all);
  EXPECT_EQ(n, 362u);  // 2 N^2 floats a device
  options.panel = 20;
  EXPECT_GT(largest_size({2, 1}, options, all), n);  // smaller buffers
  all.memories[1].usable = 8;
  EXPECT_THROW(largest_size({2, 1}, options, all), Error);
}

}  // namespace
}  // namespace meshpost::gemm
