// Values allowed in the environment, and the errors for wrong ones.
#include "meshpost/base/config.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

class Environment : public testing::Test {
 protected:
  void SetUp() override {
    for (auto const& variable : variables()) unsetenv(std::string(variable.name).c_str());
  }
  void TearDown() override { SetUp(); }
  static void set(char const* name, char const* value) { setenv(name, value, 1); }
};

TEST_F(Environment, that_says_nothing_gives_the_documented_values) {
  auto const config = Config::from_environment();
  EXPECT_EQ(config.devices, "");
  EXPECT_EQ(config.ranks, 0u);
  EXPECT_EQ(config.workers, 0u);
  EXPECT_EQ(config.deadline, std::chrono::seconds(30));
  EXPECT_EQ(config.peer_deadline, std::chrono::seconds(30));
  EXPECT_FALSE(config.check_delivery);
  EXPECT_EQ(config.trace, "");
  EXPECT_EQ(config.trace_events, 4096u);
  EXPECT_EQ(config.machine, "");
}

TEST_F(Environment, is_read) {
  set("MESHPOST_DEVICES", "cpu:5");
  set("MESHPOST_RANKS", "7");
  set("MESHPOST_WORKERS", "3");
  set("MESHPOST_DEADLINE", "0.25");
  set("MESHPOST_PEER_DEADLINE", "300");
  set("MESHPOST_CHECK", "delivery");
  set("MESHPOST_TRACE", "t.json");
  set("MESHPOST_TRACE_EVENTS", "11");
  set("MESHPOST_MACHINE", "here.json");
  auto const config = Config::from_environment();
  EXPECT_EQ(config.devices, "cpu:5");
  EXPECT_EQ(config.ranks, 7u);
  EXPECT_EQ(config.workers, 3u);
  EXPECT_EQ(config.deadline, std::chrono::milliseconds(250));
  EXPECT_EQ(config.peer_deadline, std::chrono::minutes(5));
  EXPECT_TRUE(config.check_delivery);
  EXPECT_EQ(config.trace, "t.json");
  EXPECT_EQ(config.trace_events, 11u);
  EXPECT_EQ(config.machine, "here.json");
}

TEST_F(Environment, that_is_wrong_is_refused_with_variable_value_and_what_it_may_be) {
  struct Case {
    char const* name;
    char const* value;
    char const* allowed;
  };
  for (auto const& [name, value, allowed] : {
           Case{"MESHPOST_RANKS", "many", "a whole number from 0 to 65536"},
           Case{"MESHPOST_RANKS", "-1", "a whole number from 0 to 65536"},
           Case{"MESHPOST_RANKS", "3.5", "a whole number"},
           Case{"MESHPOST_RANKS", " 3", "a whole number"},
           Case{"MESHPOST_RANKS", "", "a whole number"},
           Case{"MESHPOST_RANKS", "99999999999999999999999", "a whole number"},
           Case{"MESHPOST_WORKERS", "4097", "from 0 to 4096"},
           Case{"MESHPOST_DEADLINE", "soon", "seconds from 0 (off) to 1000000"},
           Case{"MESHPOST_DEADLINE", "-1", "seconds"},
           Case{"MESHPOST_PEER_DEADLINE", "never", "seconds from 0 (off) to 1000000"},
           Case{"MESHPOST_DEADLINE", "nan", "seconds"},
           Case{"MESHPOST_DEADLINE", "inf", "seconds"},
           Case{"MESHPOST_DEADLINE", "30s", "seconds"},
           Case{"MESHPOST_DEADLINE", "", "seconds"},
           Case{"MESHPOST_CHECK", "everything", "'delivery' or empty"},
           Case{"MESHPOST_TRACE_EVENTS", "1e6", "from 0 to 16777216"},
       }) {
    set(name, value);
    auto const error = error_of([] { Config::from_environment(); });
    EXPECT_TRUE(
        says(error, Kind::bad_environment, {name, "'" + std::string(value) + "'", allowed}));
    unsetenv(name);
  }
}

TEST_F(Environment, turns_a_deadline_off_only_by_zero) {
  set("MESHPOST_DEADLINE", "0");
  EXPECT_EQ(Config::from_environment().deadline.count(), 0);
  set("MESHPOST_DEADLINE", "0.00001");
  EXPECT_GT(Config::from_environment().deadline.count(), 0);
}

TEST(Numbers, are_parsed_whole) {
  EXPECT_EQ(parse_number("0"), 0ul);
  EXPECT_EQ(parse_number("18446744073709551615"), ~0ul);
  for (auto const* const text :
       {"", "x", "1x", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"})
    EXPECT_FALSE(parse_number(text)) << "'" << text << "'";
}

TEST(Variables, have_names_meanings_and_are_documented_once) {
  std::set<std::string_view> names;
  for (auto const& variable : variables()) {
    EXPECT_TRUE(variable.name.starts_with("MESHPOST_"));
    EXPECT_FALSE(variable.meaning.empty());
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
  }
}

TEST_F(Environment, has_names_that_are_nearly_those_of_variables) {
  auto const before = misspelt_variables();  // of this process's own
  set("MESHPOST_DEVICE", "cpu:2");
  set("MESHPOST_DEADLINE", "4");
  set("MESHPOST_DEDALINE", "4");  // two characters
  set("MESHPOST_NOD", "a");
  set("MESHPOST_MODES", "a");  // two characters of few
  set("MESHPOST_TEST_ROLE_OF_NOBODY", "1");
  auto all = misspelt_variables();
  for (auto const* name : {"MESHPOST_DEVICE", "MESHPOST_DEDALINE", "MESHPOST_NOD", "MESHPOST_MODES",
                           "MESHPOST_TEST_ROLE_OF_NOBODY"})
    unsetenv(name);
  for (auto const& text : before) std::erase(all, text);
  std::ranges::sort(all);
  EXPECT_EQ(all,
            (std::vector<std::string>{"MESHPOST_DEDALINE is not read; is MESHPOST_DEADLINE meant?",
                                      "MESHPOST_DEVICE is not read; is MESHPOST_DEVICES meant?",
                                      "MESHPOST_NOD is not read; is MESHPOST_NODE meant?"}));
  EXPECT_EQ(misspelt_variables(), before);
}

TEST(Debugger, is_not_attached_to_a_test) { EXPECT_FALSE(debugger_attached()); }

}  // namespace
}  // namespace meshpost
