#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "common/files.hpp"
#include "common/study/study.hpp"

namespace meshpost::apps {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::ThrowsMessage;

Samples samples(std::size_t count) {
  Samples all;
  for (std::size_t i = 0; i < count; ++i) all.add(static_cast<double>(count - i));  // backwards
  return all;
}

TEST(Samples, the_interval_holds_the_median_with_95_percent) {
  // Tables of confidence intervals for the median: the 6th and 15th of 20, the 2nd and 9th of 10.
  EXPECT_EQ(samples(20).median(), 10.5);
  EXPECT_EQ(samples(20).lower(), 6);
  EXPECT_EQ(samples(20).upper(), 15);
  EXPECT_EQ(samples(10).lower(), 2);
  EXPECT_EQ(samples(10).upper(), 9);
  EXPECT_EQ(samples(6).lower(), 1);
  EXPECT_EQ(samples(5).lower(), 1);  // too few: all values
  EXPECT_EQ(samples(5).upper(), 5);
  EXPECT_EQ(samples(1).median(), 1);
  EXPECT_EQ(samples(2).lower(), 1);
  EXPECT_EQ(Samples().upper(), 0);
  // Close to n / 2 - 0.98 sqrt(n), also where 2^-n is no number any more.
  EXPECT_NEAR(samples(100'000).lower(), 49'690, 2);
  EXPECT_NEAR(samples(100'000).upper(), 50'311, 2);
}

class Exchanges : public testing::Test {
 protected:
  World world_{{.devices = "cpu:1*3", .ranks = 1}};
  Window<u32> window_ = world_.window<u32>(4);
  std::vector<std::span<std::byte>> memories_;

  std::unique_ptr<Exchange> make(std::string const& kind) {
    memories_.clear();
    for (u32 device = 0; device < world_.device_count(); ++device) {
      window_.write(RankId{device}, 0, std::vector<u32>{device, 10 + device, 20 + device, 99});
      memories_.push_back(std::as_writable_bytes(window_.part(RankId{device})));
    }
    return make_exchange(kind, world_, memories_);
  }
};

TEST_F(Exchanges, carry_the_bytes_behind_the_work_on_streams_and_before_later_work) {
  auto const exchange = make("copies");
  ASSERT_GE(world_.device_count(), 2u);
  u32 const last = world_.device_count() - 1;
  u32* const from = window_.part(RankId{0}).data();
  u32* const to = window_.part(RankId{last}).data();
  exchange->prepare(3, [&](u32 step) {
    exchange->part(0).stream->call([=] { from[1] = 1000 + step; });
    exchange->run(std::vector<Message>{{0, last, 4, 12, 4}});
    exchange->part(last).stream->call([=] { to[0] = to[3]; });
  });
  double const took = exchange->play();
  EXPECT_THAT(window_.read(RankId{last}), ElementsAre(1002, 10 + last, 20 + last, 1002));
  EXPECT_GT(exchange->communication(), 0);
  EXPECT_GE(took, exchange->communication());
}

TEST_F(Exchanges, have_a_barrier_of_all_devices) {
  auto const exchange = make("copies");
  std::atomic<u32> done = 0, early = 0;
  u32 const devices = world_.device_count();
  exchange->prepare(20, [&](u32 step) {
    for (auto const& part : exchange->parts())
      part.stream->call([&, step] {
        if (done < step * devices) ++early;  // a device has not done the step before
        ++done;
      });
    exchange->barrier();
  });
  exchange->play();
  EXPECT_EQ(done, 20 * devices);
  EXPECT_EQ(early, 0u);
}

TEST_F(Exchanges, refuse_kinds_that_they_do_not_have) {
  EXPECT_THAT([&] { make("pigeons"); },
              ThrowsMessage<Error>(HasSubstr("--against pigeons: there is no such kind")));
  EXPECT_THAT([&] { make("nccl"); }, ThrowsMessage<Error>(HasSubstr("--against nccl: ")));
}

TEST(Files, appear_when_they_are_complete) {
  auto const folder = std::filesystem::temp_directory_path() / "meshpost_study_files";
  std::filesystem::create_directories(folder);
  std::vector<float> const values{1, 2, 3};
  auto const file = (folder / "x.npy").string();
  write_npy(file, "<f4", {3}, std::as_bytes(std::span(values)));
  EXPECT_EQ(std::filesystem::file_size(file) % 64, 12u);
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  std::filesystem::remove_all(folder);
  EXPECT_THAT([&] { write_npy(file, "<f4", {3}, std::as_bytes(std::span(values))); },
              ThrowsMessage<std::runtime_error>(HasSubstr("x.npy: it can't be written")));
}

}  // namespace
}  // namespace meshpost::apps
