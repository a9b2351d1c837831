// Streams of devices for copies.
#include "copy/copy_stream.hpp"

#include "copy/places.hpp"
#include "pipeline/lossy.hpp"

namespace meshpost {
namespace {

struct StreamsLater : test::LostDevice {
  StreamsLater() : LostDevice(1 << 30) {}
  std::unique_ptr<Stream> make_stream() override {
    if (none) throw Error(Kind::out_of_memory, "make a stream", "planted", "no");
    return LostDevice::make_stream();
  }
  bool none = true;
};

TEST(CopyStream, is_made_when_its_device_has_a_stream_again) {
  static auto* const device = new StreamsLater;  // lanes live as long as the process
  u64 source = 7, target = 0;
  auto const copy_word = [&] {
    copying::copy_stream(*device, nullptr, true, copying::Traffic::small)
        .copy(&target, &source, sizeof source)
        ->wait();
  };
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(test::says(test::error_of(copy_word), Kind::out_of_memory, {"planted"}));
  device->none = false;
  copy_word();
  EXPECT_EQ(target, 7u);
}

}  // namespace
}  // namespace meshpost
