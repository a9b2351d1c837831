#include "meshpost/trace/log.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/sink.hpp"

namespace meshpost {
namespace {

template <class... Arguments>
std::string formatted(char const* text, Arguments... arguments) {
  LogRecord record{};
  u32 i = 0;
  (detail::pack(record, i++, arguments), ...);
  copy_text(record.text, sizeof record.text, text);
  return format_log(record);
}

TEST(FormatLog, puts_arguments_into_the_text) {
  EXPECT_EQ(formatted("x"), "x");
  EXPECT_EQ(formatted("{} {} {}", -1, 2u, i64{1} << 40), "-1 2 1099511627776");
  EXPECT_EQ(formatted("{:.2f} {}", 1.005f, 0.5), "1.00 0.5");
  EXPECT_EQ(formatted("{} {} {}", true, 'c', false), "true c false");
  EXPECT_EQ(formatted("{0} {1} {0}", 1, 2), "1 2 1");
  EXPECT_EQ(formatted("{} {}", RankId{4}, Tag{9}), "4 9");
  EXPECT_EQ(formatted("{}", static_cast<void*>(nullptr)), "0x0");
  EXPECT_EQ(formatted("{} {} {} {} {} {} {} {}", 1, 2, 3, 4, 5, 6, 7, 8), "1 2 3 4 5 6 7 8");
  EXPECT_EQ(formatted("{{}}"), "{}");
  EXPECT_EQ(formatted("{} {}", static_cast<signed char>(-3), static_cast<unsigned short>(65535)),
            "-3 65535");
}

TEST(FormatLog, keeps_lines_whose_text_does_not_fit_their_arguments) {
  EXPECT_EQ(formatted("{} {}", 1), "{} {} 1");
  EXPECT_EQ(formatted("{:d}", 1.5), "{:d} 1.5");
  EXPECT_EQ(formatted("{", 1), "{ 1");
  EXPECT_EQ(formatted("}"), "}");
  EXPECT_EQ(formatted("{name}", 3), "{name} 3");
  EXPECT_EQ(formatted("{:{}}", 3), "{:{}} 3");
}

TEST(FormatLog, cuts_what_is_longer_than_its_room) {
  std::string const long_text(1000, 'y');
  EXPECT_EQ(formatted(long_text.c_str()), std::string(sizeof(LogRecord::text) - 1, 'y'));
  EXPECT_EQ(formatted(nullptr), "");
}

TEST(LogReader, hands_on_whole_records_in_order_and_frees_their_slots) {
  test::Listener const listener;
  std::vector<LogRecord> records(LogRing::capacity);
  u32 head = 0, tail = 0, seen = 0;
  LogReader reader({{{records.data(), &tail}, &head, &seen}});
  auto const put = [&](u32 slot, bool whole) {
    auto& record = records[slot % LogRing::capacity];
    copy_text(record.text, sizeof record.text, std::to_string(slot).c_str());
    if (whole) record.ready = slot + 1;
  };
  put(0, true), put(1, false), put(2, true);
  EXPECT_EQ(reader.drain(), 1u) << "slot 1 is not whole yet";
  EXPECT_EQ(tail, 1u);
  records[1].ready = 2;
  EXPECT_EQ(reader.drain(), 2u);
  EXPECT_EQ(reader.drain(), 0u);
  for (u32 slot = 3; slot < 3000; ++slot) {
    put(slot, true);
    if (slot % 100 == 0) reader.drain();
  }
  reader.drain();
  EXPECT_EQ(tail, 3000u);
  LogReader next({{{records.data(), &tail}, &head, &seen}});  // of the next run
  EXPECT_EQ(next.drain(), 0u);
  put(3000, true);
  EXPECT_EQ(next.drain(), 1u);
  auto const lines = listener.lines();
  ASSERT_EQ(lines.size(), 3001u);
  for (u32 i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i].second, std::to_string(i));
  EXPECT_EQ(LogReader({}).drain(), 0u);
}

}  // namespace
}  // namespace meshpost
