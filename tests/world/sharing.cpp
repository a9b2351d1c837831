// Processes of a job on one GPU: who shares it, and when that is warned of.
#include "world/sharing.hpp"

#include <gtest/gtest.h>

namespace meshpost {
namespace {

using Uses = std::vector<DeviceUse>;

bool names(std::string const& text, std::initializer_list<char const*> pieces) {
  for (auto const* const piece : pieces)
    if (text.find(piece) == text.npos) return false;
  return true;
}

TEST(Sharing, is_known_by_the_gpu_and_not_by_its_number) {
  Uses const uses{{0, "cuda:0", "GPU-a", false}, {0, "cuda:1", "GPU-b", false},
                  {1, "cuda:0", "GPU-b", false}, {2, "cuda:0", "GPU-c", false},
                  {3, "cpu:0", "", true},        {4, "cpu:0", "", true}};
  auto const warnings = turns_taken(uses);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(names(warnings[0], {"processes 0, 1 share cuda:1 (GPU-b)", "MPS does not serve it",
                                  "nvidia-cuda-mps-control -d", "cuda:1*2"}))
      << warnings[0];
}

TEST(Sharing, under_mps_leaves_each_process_a_part) {
  Uses const uses{
      {0, "cuda:0", "GPU-a", true}, {0, "cuda:1", "GPU-b", true},  {1, "cuda:0", "GPU-b", true},
      {2, "cuda:0", "GPU-b", true}, {3, "cuda:3", "GPU-d", true},  {4, "cpu:0", "", true},
      {5, "cpu:0", "", true},       {6, "cuda:0", "GPU-e", false}, {7, "cuda:0", "GPU-e", false}};
  u32 const wanted[] = {3, 3, 3, 1, 1, 1, 1, 1};  // in turns, each has the whole
  for (u32 process = 0; process < std::size(wanted); ++process)
    EXPECT_EQ(sharers(uses, process), wanted[process]) << process;
  EXPECT_EQ(sharers(uses, 8), 1u) << "a process without devices";
}

TEST(Sharing, is_warned_of_once_a_gpu) {
  Uses const uses{{0, "cuda:0", "GPU-a", false},
                  {1, "cuda:0", "GPU-a", false},
                  {2, "cuda:0", "GPU-a", false},
                  {3, "cuda:1", "GPU-b", false},
                  {4, "cuda:1", "GPU-b", false}};
  auto const warnings = turns_taken(uses);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(names(warnings[0], {"processes 0, 1, 2 share cuda:0", "cuda:0*3"})) << warnings[0];
  EXPECT_TRUE(names(warnings[1], {"processes 3, 4 share cuda:1", "cuda:1*2"})) << warnings[1];
}

TEST(Sharing, under_mps_or_of_cpu_devices_is_not_warned_of) {
  EXPECT_TRUE(turns_taken({{0, "cuda:0", "GPU-a", true}, {1, "cuda:0", "GPU-a", true}}).empty());
  EXPECT_TRUE(turns_taken({{0, "cpu:0", "", false}, {1, "cpu:0", "", false}}).empty());
  EXPECT_TRUE(turns_taken({{0, "cuda:0", "GPU-a", false}}).empty());
  EXPECT_TRUE(turns_taken({}).empty());
}

}  // namespace
}  // namespace meshpost
