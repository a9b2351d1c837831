// Processes of a job on one GPU: which of them share it, and when there is a warning.
#include "world/gpu_sharing.hpp"

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
  u32 const wanted[] = {3, 3, 3, 1, 1, 1, 1, 1};  // in turns, each has the whole GPU
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

TEST(Sharing, of_a_hosts_gpus_is_even_however_processes_are_numbered) {
  std::vector<std::string> const cyclic{"a", "b", "a", "b", "a", "b", "a", "b"},
      block{"a", "a", "a", "a", "b", "b", "b", "b"}, uneven{"a", "b", "b", "a", "b", "b", "b", "b"};
  auto const gpus_of = [](std::vector<std::string> const& hosts, u32 gpus) {
    std::vector<u32> chosen;
    for (u32 process = 0; process < hosts.size(); ++process)
      chosen.push_back(default_gpu(hosts, process, gpus));
    return chosen;
  };
  EXPECT_EQ(gpus_of(cyclic, 4), (std::vector<u32>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(gpus_of(block, 4), (std::vector<u32>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(gpus_of(uneven, 4), (std::vector<u32>{0, 0, 1, 1, 2, 3, 0, 1}));
  EXPECT_EQ(gpus_of(cyclic, 1), std::vector<u32>(8, 0));
}

}  // namespace
}  // namespace meshpost
