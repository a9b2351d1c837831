#pragma once
#include <gtest/gtest.h>
#include <meshpost/meshpost.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/mixed.hpp"
#include "support/sanitized.hpp"

// Devices of a test: the same test runs on CPU devices and, with MESHPOST_TEST_DEVICES=cuda, on
// GPUs. With cpu:1*3 or cuda:0*3 it runs on logical devices.

namespace meshpost::test {

inline std::string devices() {
  char const* const chosen = std::getenv("MESHPOST_TEST_DEVICES");
  return chosen ? chosen : "cpu:2";
}
inline bool on_gpus() { return devices().starts_with("cuda"); }

enum class Spread { one_device, several_devices };

inline std::string devices(Spread spread) {
  if (spread == Spread::one_device) return on_gpus() ? "cuda:0" : "cpu:1";
  if (!std::getenv("MESHPOST_TEST_DEVICES")) return "cpu:3";
  // Logical devices replace GPUs that a host doesn't have.
  bool const alone = devices() == "cuda" && open_devices(devices()).size() == 1;
  return alone ? "cuda:0*2" : devices();
}

/// A World for tests: a run that hangs should end before ctest's limit.
inline WorldOptions options(u32 ranks, std::string const& where = devices()) {
  WorldOptions wanted;
  wanted.devices = where;
  wanted.ranks = ranks;
  wanted.deadline = std::chrono::seconds(15);
  return wanted;
}

/// A number of ranks a device, threads a rank and devices.
struct Shape {
  Spread spread;
  u32 ranks;
  Dim3 threads;
};

inline Launch launch_of(Shape const& shape) {
  Launch launch;
  launch.threads = shape.threads;
  return launch;
}

inline std::string shape_name(testing::TestParamInfo<Shape> const& info) {
  auto const& [spread, ranks, threads] = info.param;
  std::string text = spread == Spread::one_device ? "one_device_" : "several_devices_";
  text += std::to_string(ranks) + "_ranks_";
  if (threads.x == 0) return text + "default_threads";
  text += std::to_string(threads.x);
  if (threads.volume() != threads.x)
    text += "x" + std::to_string(threads.y) + "x" + std::to_string(threads.z);
  return text + "_threads";
}

/// Threads of a rank: a warp of a GPU, and a block of three dimensions. More threads, and more
/// ranks below, find no more under sanitizers and take minutes.
#if defined(__SANITIZE_THREAD__)
inline constexpr Dim3 warp_threads{8, 1, 1}, box_threads{2, 2, 2};
#else
inline constexpr Dim3 warp_threads{32, 1, 1}, box_threads{4, 2, 2};
#endif

inline auto all_shapes() {
  constexpr auto one = Spread::one_device, several = Spread::several_devices;
  constexpr Dim3 unsaid{0, 1, 1};
  if constexpr (sanitized)
    return testing::Values(Shape{one, 1, unsaid}, Shape{one, 2, unsaid}, Shape{several, 3, unsaid},
                           Shape{one, 3, warp_threads}, Shape{several, 4, warp_threads},
                           Shape{several, 2, box_threads});
  else
    return testing::Values(Shape{one, 1, unsaid}, Shape{one, 2, unsaid}, Shape{several, 3, unsaid},
                           Shape{several, 16, unsaid}, Shape{one, 3, warp_threads},
                           Shape{several, 16, warp_threads}, Shape{one, 1, box_threads},
                           Shape{several, 2, box_threads});
}

/// A test that holds for every shape.
class EveryShape : public testing::TestWithParam<Shape> {
 protected:
  World world{options(GetParam().ranks, devices(GetParam().spread))};
  Launch launch = launch_of(GetParam());
};

/// Errors found by the threads of a kernel. Each counts in its own word; the host adds them up.
struct Findings {
  static constexpr u64 most_threads = 1024;
  Window<u32> words;

  MESHPOST_FN void add(Rank const& self, bool wrong) const {
    if (wrong) words.local(self)[self.thread()] += 1;
  }
};
inline Findings make_findings(World& world) {
  return {world.window<u32>(Findings::most_threads, Tags{0}, "findings")};
}
inline u64 total(World const& world, Findings const& findings) {
  u64 sum = 0;
  for (u32 rank = 0; rank < world.size(); ++rank)
    for (u32 const wrong : findings.words.read(RankId{rank})) sum += wrong;
  return sum;
}

}  // namespace meshpost::test
