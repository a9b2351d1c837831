// Devices split into logical ones: shared resources, own resources, and grids of a launch that make
// one launch.
#include "device/logical.hpp"

#include <gtest/gtest.h>

#include "meshpost/device/memory_map.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

TEST(LogicalDevices, are_named_by_what_they_are_parts_of) {
  auto const devices = open_devices("cpu:2*3");
  ASSERT_EQ(devices.size(), 6u);
  char const* const names[] = {"cpu:0.0", "cpu:0.1", "cpu:0.2", "cpu:1.0", "cpu:1.1", "cpu:1.2"};
  for (u32 i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i]->name(), names[i]);
    EXPECT_EQ(devices[i]->kind(), "cpu");
    EXPECT_EQ(devices[i]->index(), i / 3);
    EXPECT_EQ(physical(devices[i])->name(), "cpu:" + std::to_string(i / 3));
  }
  auto const wholes = open_devices("cpu:2");
  EXPECT_EQ(physical_devices(devices), wholes);
  EXPECT_EQ(physical_devices(wholes), wholes);
  EXPECT_EQ(open_devices("cpu*2").size(), 4u);
}

TEST(LogicalDevices, that_are_the_only_one_are_the_device_itself) {
  EXPECT_EQ(open_devices("cpu:2*1"), open_devices("cpu:2"));
}

TEST(LogicalDevices, have_the_free_memory_of_the_whole) {
  auto const devices = open_devices("cpu:1*2");
  EXPECT_GT(devices[1]->free_memory(), 0u);
  EXPECT_LE(devices[1]->free_memory(), devices[1]->info().memory.value);
}

TEST(LogicalDevices, share_memory_that_belongs_to_the_whole) {
  auto const devices = open_devices("cpu:1*2");
  auto const memory = devices[1]->allocate(Bytes{64}, MemoryKind::device);
  auto const found = memory_map().find(memory.data());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, physical(devices[1]).get());
  std::vector<u8> const in(64, 7);
  std::vector<u8> out(64);
  devices[1]->write(memory.data(), in.data(), Bytes{64});
  devices[0]->read(out.data(), memory.data(), Bytes{64});
  EXPECT_EQ(in, out);
}

TEST(LogicalDevices, that_make_no_sense_are_refused_with_what_would) {
  struct Case {
    char const* spec;
    char const* cause;
    char const* remedy;
  };
  for (auto const& [spec, cause, remedy] : {
           Case{"cpu:2*", "nothing follows the '*'", "*9 at the end"},
           Case{"cpu:2*0", "splits each device into 0; there may be 1 to 1024", "*9 at the end"},
           Case{"cpu:2*1025", "into 1025", "*9 at the end"},
           Case{"cpu:2*x", "'x' is not a number of logical devices", "one number at the end"},
           Case{"cpu:2*-1", "'-1' is not a number", "one number at the end"},
           Case{"cpu:2*2*2", "'2*2' is not a number", "one number at the end"},
           Case{"cpu*2:2", "'2:2' is not a number", "one number at the end"},
           Case{"cpu:2*2,3", "'2,3' is not a number", "one number at the end"},
           Case{"cpu:2*99999999999999999999", "is not a number", "one number"},
           Case{"cpu:32*33", "splits each of 32 devices into 33, which makes 1056", "fewer"},
           Case{"cpu:0*4", "0 CPU devices", "cpu:4 is four"},
           Case{"cpu:*4", "nothing follows the colon", "cpu:4 is four"},
           Case{"cpu:2.1", "'2.1' is not a number of CPU devices", "splits each of them"},
       })
    EXPECT_TRUE(says(error_of([spec = spec] { open_devices(spec); }), Kind::bad_argument,
                     {"devices", spec, cause, remedy}))
        << spec;
  EXPECT_TRUE(says(error_of([] { open_devices("*4"); }), Kind::bad_argument,
                   {"no kind of device called ''", "this build has"}));
}

TEST(SharedGrids, are_those_of_one_physical_device) {
  std::vector<LaunchGrid> grids;
  auto const devices = open_devices("cpu:2*3");
  for (u32 i = 0; i < devices.size(); ++i) grids.push_back({devices[i], 5, 5 * i});
  auto const shared = by_physical_device(grids);
  ASSERT_EQ(shared.size(), 2u);
  for (u32 i = 0; i < 2; ++i) {
    EXPECT_EQ(shared[i].device->name(), "cpu:" + std::to_string(i));
    EXPECT_EQ(shared[i].first, &grids[3 * i]);
    EXPECT_EQ(shared[i].count, 3u);
    EXPECT_EQ(shared[i].ranks, 15u);
  }
}

TEST(SharedGrids, of_whole_devices_stand_alone) {
  std::vector<LaunchGrid> grids;
  for (auto const& device : open_devices("cpu:3")) grids.push_back({device, 4, 0});
  auto const shared = by_physical_device(grids);
  ASSERT_EQ(shared.size(), 3u);
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_EQ(shared[i].device, grids[i].device);
    EXPECT_EQ(shared[i].count, 1u);
    EXPECT_EQ(shared[i].ranks, 4u);
  }
  EXPECT_TRUE(by_physical_device({}).empty());
}

}  // namespace
}  // namespace meshpost
