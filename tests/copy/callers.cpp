// Copies after fork() and from inside kernels are refused. Copies after main are made.
#include <latch>
#include <optional>
#include <thread>

#include "copy/places.hpp"
#include "copy/state.hpp"
#include "meshpost/pipeline/group.hpp"
#include "support/child.hpp"

namespace meshpost {
namespace {

using test::copy_devices;
using test::error_of;
using test::says;
using test::status_in_child;

// All calls that make copies, or ask about a copy in progress.
struct Calls {
  u8* target;
  u8 const* source;
  Copy* under_way;

  template <class Visit>
  void each(Visit&& visit) const {
    visit([this] { copy(target, source, Bytes{8}); });
    visit([this] { copy(target, source, Bytes{0}); });
    visit([this] { copy_async(target, source, Bytes{8}); });
    visit([this] { copy_async(target, {}, source, {}, {Bytes{8}, 1, 1}); });
    visit([this] { copy_batch(std::vector<Segment>{{target, source, Bytes{8}}}); });
    visit([] { use_devices_for_copies({}); });
    visit([this] { under_way->wait(); });
    visit([this] { under_way->done(); });
    visit([this] { under_way->event(); });
  }
};

TEST(CopyForkCpuOnly, makes_every_call_of_the_child_fail_and_leaves_the_parent_alone) {
  auto stream = open_devices("cpu:1")[0]->make_stream();
  std::vector<u8> const source(1000, 7);
  std::vector<u8> target(1000), other(8);
  std::latch go(1);
  stream->call([&] { go.wait(); });
  std::optional<Copy> under_way(
      copy_async(target.data(), source.data(), Bytes{1000}, {{stream.get()}}));
  Calls{other.data(), source.data(), &*under_way}.each(
      [](auto const& call) { EXPECT_EQ(status_in_child(call), 100); });
  EXPECT_EQ(status_in_child([&] { stream->fill(other.data(), 1, Bytes{8}); }), 100);
  EXPECT_EQ(status_in_child([&] { stream->synchronize(); }), 100);
  EXPECT_EQ(status_in_child([] { copy_devices().front()->make_stream(); }), 100);
  EXPECT_EQ(status_in_child([&] { auto const moved = *std::exchange(under_way, std::nullopt); }),
            0);
  EXPECT_EQ(status_in_child([&] { stream.reset(); }), 0);
  go.count_down();
  under_way->wait();
  EXPECT_EQ(target, source);
}

TEST(CopyForkCpuOnly, of_a_device_group_is_refused_and_the_child_may_drop_it) {
  int steps = 0;
  auto const devices = open_devices("cpu:1");
  auto group = std::make_unique<DeviceGroup>(devices);
  EXPECT_EQ(status_in_child([&] { DeviceGroup const another(devices); }), 100);
  EXPECT_EQ(status_in_child([&] { group->step_all([](Member const&) {}); }), 100);
  EXPECT_EQ(status_in_child([&] { group->finalize(); }), 100);
  EXPECT_EQ(status_in_child([&] { group.reset(); }), 0);
  group->step_all([&](Member const&) { ++steps; });
  EXPECT_EQ(steps, 1);
}

struct CopiesInside {
  Calls calls;
  u32* refused;

  void operator()(Rank&) const {
    calls.each([&](auto const& call) {
      try {
        call();
      } catch (Error const& error) {
        *refused += static_cast<u32>(says(error, Kind::misuse, {"inside a kernel"}));
      }
    });
  }
};

TEST(CopyInKernelCpuOnly, is_refused) {
  std::vector<u8> const source(8, 7);
  std::vector<u8> target(8);
  auto under_way = copy_async(target.data(), source.data(), Bytes{8});
  under_way.wait();
  u32 refused = 0;
  World world(test::options(1, "cpu:1"));
  world.run(CopiesInside{{target.data(), source.data(), &under_way}, &refused});
  EXPECT_EQ(refused, 9u);
}

// Constructed before anything of the library's, so it is destroyed after all of that.
struct CopiesAtExit {
  std::vector<u8> source = std::vector<u8>(2'000'000, 7), target = std::vector<u8>(2'000'000);
  bool armed = false;

  CopiesAtExit() = default;
  CopiesAtExit(CopiesAtExit const&) = delete;
  CopiesAtExit& operator=(CopiesAtExit const&) = delete;
  ~CopiesAtExit() {
    if (!armed) return;
    for (u64 const size : {u64{0}, u64{8}, u64{2'000'000}}) make(size);
    {
      Copy const failed(nobodys());
    }
    _Exit(target == source ? 0 : 1);
  }
  void make(u64 size) {
    copy(target.data(), source.data(), Bytes{size});
    copy_async(target.data(), source.data(), Bytes{size}).wait();
    copy_async(target.data(), source.data(), Bytes{size}).event()->wait();
    copy_batch(std::vector<Segment>{{target.data(), source.data(), Bytes{size}}}).wait();
    auto const stream = open_devices("cpu:1")[0]->make_stream();
    copy_async(target.data(), source.data(), Bytes{size}, {{stream.get()}}).wait();
    auto const dropped = copy_async(target.data(), source.data(), Bytes{size});
  }
  static std::shared_ptr<Copy::State> nobodys();
};

struct Failed : Copy::State {
  void wait() override { throw Error(Kind::device_failed, "copy", "planted", ""); }
  bool done() override { return true; }
  std::shared_ptr<Event> event() override { return nullptr; }
};
std::shared_ptr<Copy::State> CopiesAtExit::nobodys() { return std::make_shared<Failed>(); }

void copy_in_a_static_destructor() {
  static CopiesAtExit last;
  last.make(2'000'000);
  last.make(0);
  event_sink();
  last.armed = true;
  std::exit(2);
}

TEST(CopyAtExitCpuOnly, in_static_destructors_is_made) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(copy_in_a_static_destructor(), testing::ExitedWithCode(0), "nobody waited for");
}

// -- one Copy

TEST(CopyHandle, that_was_moved_from_says_so) {
  std::vector<u8> const source(8, 7);
  std::vector<u8> target(8);
  auto one = copy_async(target.data(), source.data(), Bytes{8});
  auto const two = std::move(one);
  for (auto const& error : {error_of([&] { one.wait(); }), error_of([&] { one.done(); }),
                            error_of([&] { one.event(); })})  // NOLINT: that is the point
    EXPECT_TRUE(says(error, Kind::misuse, {"moved from", "use the Copy that it was moved to"}));
  EXPECT_TRUE(two.done());
}

TEST(CopyHandle, whose_error_was_thrown_is_dropped_without_a_warning) {
  test::Listener const listener;
  {
    Copy one(std::make_shared<Failed>());
    EXPECT_THROW(one.wait(), Error);
    auto const moved = std::move(one);
  }
  EXPECT_EQ(listener.warnings(), std::vector<std::string>{});
  {
    Copy const nobodys(std::make_shared<Failed>());
  }
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings()[0].find("nobody waited for failed: copy: planted"),
            std::string::npos);
}

TEST(CopyHandle, may_be_waited_for_by_several_threads) {
  std::vector<u8> const source(2'000'000, 7);
  std::vector<u8> target(source.size());
  auto one = copy_async(target.data(), source.data(), Bytes{source.size()});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      one.wait();
      EXPECT_TRUE(one.done());
      EXPECT_TRUE(target == source);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace meshpost
