// Uplinks of hosts whose buses the test describes in files.
#include "topo/uplinks.hpp"

#include <gmock/gmock.h>
#include <unistd.h>
#include <meshpost/device/backend.hpp>

#include <fstream>

namespace topo {
namespace {

using namespace meshpost;
using testing::ElementsAre;
using testing::IsEmpty;

// A device on a bus; nobody uses its memory.
class OnBus : public Device {
 public:
  OnBus(u32 index, std::string bus) : index_(index) { info_.bus = std::move(bus); }
  std::string_view kind() const override { return "example"; }
  u32 index() const override { return index_; }
  DeviceInfo const& info() const override { return info_; }
  Allocation allocate(Bytes, MemoryKind) override { return {}; }
  Bytes free_memory() override { return {}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  std::unique_ptr<Stream> adopt_stream(void*) override { return nullptr; }
  PointerInfo locate(void const*) override { return {}; }

 private:
  void do_read(void*, void const*, Bytes) override {}
  void do_write(void*, void const*, Bytes) override {}
  void do_fill(void*, u8, Bytes) override {}
  u32 index_;
  DeviceInfo info_;
};

class Uplinks : public testing::Test {
 protected:
  ~Uplinks() override { std::filesystem::remove_all(folder_); }
  // A device of number `index` at the end of a path of bridges.
  void add(u32 index, std::string const& path) {
    auto const own = folder_ / "devices" / path;
    std::filesystem::create_directories(own);
    std::filesystem::create_directories(buses_);
    std::filesystem::create_directory_symlink(own, buses_ / own.filename());
    devices_.push_back(std::make_shared<OnBus>(index, own.filename()));
  }
  std::vector<std::string> found() const {
    std::vector<std::string> texts;
    for (auto const& uplink : shared_uplinks(devices_, buses_)) {
      auto text = uplink.bridge + " (" + uplink.link + ")";
      for (auto const& device : uplink.devices) text += " " + device->name();
      texts.push_back(text);
    }
    return texts;
  }
  std::filesystem::path const folder_ =
      std::filesystem::temp_directory_path() / ("uplinks-" + std::to_string(getpid()));
  std::filesystem::path const buses_ = folder_ / "buses";
  Devices devices_;
};

TEST_F(Uplinks, are_switches_with_several_devices_behind_them) {
  std::string const port = "pci0000:15/0000:15:01.0/0000:16:00.0";
  add(0, port + "/0000:17:00.0/0000:18:00.0");
  add(1, port + "/0000:17:01.0/0000:19:00.0");
  add(2, "pci0000:25/0000:25:01.0/0000:26:00.0");
  std::ofstream(folder_ / "devices" / port / "current_link_speed") << "32.0 GT/s PCIe\n";
  std::ofstream(folder_ / "devices" / port / "current_link_width") << "16\n";
  EXPECT_THAT(found(), ElementsAre("0000:16:00.0 (32.0 GT/s PCIe x16) example:0 example:1"));
}

TEST_F(Uplinks, of_switches_behind_a_switch_are_all_named) {
  std::string const port = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  add(0, port + "0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0");
  add(1, port + "0000:17:00.0/0000:18:00.0/0000:19:01.0/0000:1b:00.0");
  add(2, port + "0000:17:01.0/0000:1c:00.0");
  EXPECT_THAT(found(), ElementsAre("0000:16:00.0 () example:0 example:1 example:2",
                                   "0000:18:00.0 () example:0 example:1"));
}

TEST_F(Uplinks, are_not_shared_at_the_host_itself) {
  add(0, "pci0000:00/0000:00:05.0");
  add(1, "pci0000:00/0000:00:06.0");
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Uplinks, are_unknown_of_devices_on_no_bus_or_a_hidden_one) {
  add(0, "pci0000:15/0000:15:01.0/0000:18:00.0");
  devices_.push_back(std::make_shared<OnBus>(1, ""));
  devices_.push_back(std::make_shared<OnBus>(2, "0000:99:00.0"));
  EXPECT_THAT(found(), IsEmpty());
}

TEST(Rates, at_once_are_of_all_devices) {
  auto const devices = open_devices("cpu:2");
  for (bool const into : {true, false}) {
    auto const rate = rate_at_once(devices, into, Bytes{u64{1} << 20});
    EXPECT_GT(rate, 1e6);
    EXPECT_LT(rate, 1e13);
  }
}

TEST(Report, has_the_rates_only_if_they_are_measured) {
  std::vector<Uplink> const uplinks{{"0000:16:00.0", "32.0 GT/s PCIe x16", open_devices("cpu:2")}};
  std::string texts[2];
  for (bool const measured : {false, true}) {
    testing::internal::CaptureStdout();
    print_uplinks(uplinks, measured);
    texts[measured] = testing::internal::GetCapturedStdout();
    EXPECT_THAT(texts[measured], testing::HasSubstr("shared uplink 0000:16:00.0 (32.0 GT/s PCIe "
                                                    "x16): cpu:0, cpu:1"));
  }
  EXPECT_THAT(texts[0], testing::Not(testing::HasSubstr("GB/s at once")));
  EXPECT_THAT(texts[1], testing::ContainsRegex("from pinned memory: [0-9.]+ GB/s at once"));
  EXPECT_THAT(texts[1], testing::ContainsRegex("to pinned memory: .* in sum one by one"));
}

}  // namespace
}  // namespace topo
