// A run that fails because the host itself fails leaves nothing behind for the next run.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <system_error>

#include "base/host_hooks.hpp"
#include "support/errors.hpp"
#include "support/everything.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

[[noreturn]] void refuse_thread() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

// A place hook, for a scope.
struct AtHostHook {
  explicit AtHostHook(hooks::HostHook hook) { hooks::install_host_hook(std::move(hook)); }
  ~AtHostHook() { hooks::install_host_hook(nullptr); }
  AtHostHook(AtHostHook const&) = delete;
  AtHostHook& operator=(AtHostHook const&) = delete;
};

// Rank 0 sends messages that are never consumed, and enters a barrier.
struct SendsAndStays {
  Window<u32> window;
  std::atomic<bool>* sent;
  void operator()(Rank& self) const {
    if (self.id() != 0) return;
    u32 const word = 7;
    self.notify(window, RankId{1}, Tag{0});
    self.put_notify(window.at(RankId{1}, 0), LocalSpan<u32 const>(&word, 1), Tag{1});
    *sent = true;
    sent->notify_all();
    self.barrier();
  }
};
struct FindsNothing {
  Window<u32> window;
  void operator()(Rank& self) const {
    self.barrier();
    for (u32 tag = 0; tag < 2; ++tag)
      if (self.test(window, Tag{tag})) self.fail("nobody sent this");
    self.barrier();
  }
};

void expect_a_clean_run(World& world, Window<u32> const& window) {
  EXPECT_TRUE(world.run(FindsNothing{window}).unconsumed.empty());
  test::try_everything(world);
}

class HalfBegun : public testing::TestWithParam<u32> {
 protected:
  WorldOptions options() const {
    auto options = test::options(1, "cpu:2");
    options.workers = 2;
    options.lanes = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(CpuOnly, HalfBegun, testing::Values(0u, 2u), [](auto const& chosen) {
  return "with_" + std::to_string(chosen.param) + "_lanes";
});

TEST_P(HalfBegun, runs_whose_launch_failed_leave_no_notifications) {
  World world(options());
  auto const window = world.window<u32>(1, Tags{2}, "inbox");
  std::atomic<bool> sent{false};
  {
    u32 threads = 0;
    AtHostHook const hook([&](std::string_view place) {
      if (place != "start a worker's thread" || ++threads != 2) return;
      sent.wait(false);
      refuse_thread();
    });
    EXPECT_TRUE(says(error_of([&] { world.run(SendsAndStays{window, &sent}); }),
                     Kind::out_of_memory, {"1 of 2 worker threads", "ulimit -u"}));
  }
  expect_a_clean_run(world, window);
}

TEST_P(HalfBegun, runs_without_memory_for_a_worker_leave_nothing_either) {
  World world(options());
  auto const window = world.window<u32>(1, Tags{2}, "inbox");
  {
    u32 threads = 0;
    AtHostHook const hook([&](std::string_view place) {
      if (place == "start a worker's thread" && ++threads == 2) throw std::bad_alloc();
    });
    EXPECT_TRUE(says(error_of([&] { world.run(FindsNothing{window}); }), Kind::out_of_memory,
                     {"1 of 2 worker threads", "memory is used up"}));
  }
  expect_a_clean_run(world, window);
}

struct LogsAndWaits {
  Window<u32> window;
  void operator()(Rank& self) const {
    if (self.id() == 0) {
      self.notify(window, RankId{1}, Tag{0});
      self.log("rank {}", self.id());
    }
    self.wait(window, Tag{1});
  }
};
struct FullDisk : EventSink {
  void warning(std::string_view) override {}
  void log(unsigned, std::string_view) override { throw std::runtime_error("the disk is full"); }
};

TEST_P(HalfBegun, runs_whose_log_the_user_can_not_take_end_and_leave_nothing) {
  World world(options());
  auto const window = world.window<u32>(1, Tags{2}, "inbox");
  auto const before = set_event_sink(std::make_shared<FullDisk>());
  auto const error = error_of([&] { world.run(LogsAndWaits{window}); });
  set_event_sink(before);
  EXPECT_TRUE(says(error, Kind::misuse, {"print what a rank logged", "the disk is full", "catch"}));
  expect_a_clean_run(world, window);
}

TEST_P(HalfBegun, runs_that_could_not_be_prepared_are_refused_once) {
  World world(options());
  auto const window = world.window<u32>(1, Tags{2}, "inbox");
  {
    AtHostHook const hook([](std::string_view place) {
      if (place == "prepare a run") throw std::bad_alloc();
    });
    EXPECT_TRUE(says(error_of([&] { world.run(FindsNothing{window}); }), Kind::out_of_memory,
                     {"run", "the host's memory is used up"}));
  }
  expect_a_clean_run(world, window);
}

TEST(HalfBegunCpuOnly, windows_give_back_what_they_had_when_more_was_not_to_be_had) {
  World world(test::options(64, "cpu:2"));
  u32 grown = 0;
  bool refused = true;
  AtHostHook const hook([&](std::string_view place) {
    if (place != "grow a device's memory") return;
    ++grown;
    if (refused) throw Error(Kind::out_of_memory, "grow", "nothing is left", "wait");
  });
  constexpr u64 small = u64{4} << 10;
  for (int i = 0; i < 100; ++i)  // their data have room; their counters, 48 MiB, don't
    EXPECT_TRUE(says(error_of([&] { world.window<char>(small, Tags{1u << 16}); }),
                     Kind::out_of_memory, {"nothing is left"}));
  refused = false, grown = 0;
  world.window<char>(small, Tags{1});
  EXPECT_EQ(grown, 0u) << "there was room before";
}

struct NotifiesAllItsTags {
  Window<u32> window;
  u32 tags;
  void operator()(Rank& self) const {
    for (u32 tag = 0; tag < tags; ++tag) self.notify(window, self.id(), Tag{tag});
  }
};

TEST(HalfBegunCpuOnly, unconsumed_notifications_are_listed_up_to_a_number_and_counted_beyond) {
  World world(test::options(2, "cpu:1"));
  constexpr u32 tags = 1u << 16;
  auto const window = world.window<u32>(1, Tags{tags}, "inbox");
  test::Listener const listener;
  auto const result = world.run(NotifiesAllItsTags{window, tags});
  EXPECT_EQ(result.unconsumed.size(), 100'000u);
  EXPECT_EQ(result.unconsumed_left_out, 2 * tags - 100'000u);
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings()[0].find("and 131068 more"), std::string::npos)
      << listener.warnings()[0];
  expect_a_clean_run(world, window);
}

TEST(HalfBegunCpuOnly, worlds_say_that_there_are_no_threads) {
  auto const refuse_at = [](std::string_view refused) {
    return [refused](std::string_view place) {
      if (place == refused) refuse_thread();
    };
  };
  auto options = test::options(1, "cpu:2");
  {
    AtHostHook const hook(refuse_at("start the supervisor's thread"));
    EXPECT_TRUE(says(error_of([&] { World const world(options); }), Kind::out_of_memory,
                     {"World", "no thread could be started", "ulimit -u"}));
  }
  options.apart = true;
  for (auto const* const place : {"start the proxy's thread", "start the supervisor's thread"}) {
    AtHostHook const hook(refuse_at(place));
    EXPECT_TRUE(says(error_of([&] { World const world(options); }), Kind::out_of_memory,
                     {"World", "no thread could be started", "ulimit -u"}));
  }
  World world(options);
  test::try_everything(world);
}

}  // namespace
}  // namespace meshpost
