#include "meshpost/base/events.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "meshpost/base/hooks.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

TEST(EventSink, is_replaced_and_given_back) {
  auto const before = event_sink();
  {
    test::Listener const listener;
    EXPECT_NE(event_sink(), before);
    event_sink()->warning("hot");
    event_sink()->log(3, "line");
    EXPECT_EQ(listener.warnings(), std::vector<std::string>{"hot"});
    ASSERT_EQ(listener.lines().size(), 1u);
    EXPECT_EQ(listener.lines()[0], (std::pair<unsigned, std::string>{3, "line"}));
  }
  EXPECT_EQ(event_sink(), before);
}

TEST(EventSink, that_throws_at_a_warning_leaves_it_to_the_console) {
  struct Full : EventSink {
    void warning(std::string_view) override { throw std::runtime_error("the disk is full"); }
    void log(unsigned, std::string_view) override {}
  };
  auto const before = set_event_sink(std::make_shared<Full>());
  testing::internal::CaptureStderr();
  warn("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "meshpost: warning: careful\n");
  set_event_sink(before);
}

TEST(EventSink, that_is_null_means_the_console) {
  auto const before = set_event_sink(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  event_sink()->log(4, "hello");
  event_sink()->warning("careful");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "[rank 4] hello\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "meshpost: warning: careful\n");
  set_event_sink(before);
}

TEST(Hooks, have_a_name_for_every_step) {
  std::set<std::string_view> names;
  for (u32 step = 0; step < static_cast<u32>(hooks::Step::count); ++step)
    names.insert(hooks::name(static_cast<hooks::Step>(step)));
  EXPECT_EQ(names.size(), static_cast<u32>(hooks::Step::count));
  EXPECT_TRUE(names.contains("put_copy") && names.contains("barrier_release") &&
              !names.contains(""));
}

TEST(Hooks, are_asked_while_they_are_installed) {
  EXPECT_EQ(hooks::ask(hooks::Step::put_copy, 1), hooks::Action::proceed);
  hooks::install([](hooks::Step step, unsigned rank) {
    return step == hooks::Step::put_copy && rank == 1 ? hooks::Action::drop
                                                      : hooks::Action::proceed;
  });
  EXPECT_TRUE(hooks::installed.load());
  EXPECT_EQ(hooks::ask(hooks::Step::put_copy, 1), hooks::Action::drop);
  EXPECT_EQ(hooks::ask(hooks::Step::put_copy, 2), hooks::Action::proceed);
  hooks::install(nullptr);
  EXPECT_FALSE(hooks::installed.load());
}

}  // namespace
}  // namespace meshpost
