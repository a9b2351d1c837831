#include "trace/timeline_writer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "base/host_hooks.hpp"
#include "support/sink.hpp"

namespace meshpost::trace {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

TimelineWriter::Collect of(std::string const& kernel) {
  return [kernel] { return Timeline{kernel, {"cpu:0"}, 0, 10, {}}; };
}

class TimelineWriting : public testing::Test {
 protected:
  TimelineWriting() { fs::create_directories(folder); }
  ~TimelineWriting() override {
    hooks::install_host_hook(nullptr);
    fs::remove_all(folder);
  }
  std::string kernel() const {
    std::ifstream in(file);
    return in ? nlohmann::json::parse(in)["otherData"]["kernel"].get<std::string>() : "";
  }
  u32 files() const { return static_cast<u32>(std::distance(fs::directory_iterator(folder), {})); }
  fs::path const folder = testing::TempDir() + "timelines" + std::to_string(getpid());
  std::string const file = folder / "t.json";
  TimelineWriter& writer = TimelineWriter::of_process();
};

TEST_F(TimelineWriting, leaves_the_file_and_nothing_beside_it) {
  writer.write(file, of("one"));
  EXPECT_EQ(kernel(), "one");
  writer.write(file, of("two"));
  EXPECT_EQ(kernel(), "two");
  EXPECT_EQ(files(), 1u);
}

TEST_F(TimelineWriting, that_is_put_off_comes_soon) {
  writer.put_off(file, of("soon"));
  for (auto const end = std::chrono::steady_clock::now() + 20s;
       kernel() != "soon" && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(kernel(), "soon");
}

TEST_F(TimelineWriting, keeps_the_old_file_until_the_new_one_is_whole) {
  writer.write(file, of("old"));
  std::promise<void> begun, go_on;
  hooks::install_host_hook([&](std::string_view place) {
    if (place != "write a timeline") return;
    begun.set_value();
    go_on.get_future().wait();
  });
  std::thread other([&] { writer.write(file, of("new")); });
  begun.get_future().wait();
  EXPECT_EQ(kernel(), "old");
  go_on.set_value();
  other.join();
  EXPECT_EQ(kernel(), "new");
}

TEST_F(TimelineWriting, skips_what_a_later_one_replaces_before_it_was_begun) {
  std::promise<void> begun, go_on;
  std::atomic<bool> first = true;
  hooks::install_host_hook([&](std::string_view place) {
    if (place != "write a timeline" || !first.exchange(false)) return;
    begun.set_value();
    go_on.get_future().wait();
  });
  std::thread other([&] { writer.write(file, of("first")); });
  begun.get_future().wait();
  std::atomic<u32> collected = 0;
  for (u32 i = 0; i < 10; ++i)
    writer.put_off(file, [&collected, i] {
      ++collected;
      return of(std::to_string(i))();
    });
  go_on.set_value();
  writer.finish();
  other.join();
  EXPECT_EQ(kernel(), "9");
  EXPECT_EQ(collected, 1u);
  for (u32 i = 0; i < 2; ++i) writer.put_off(file, of("put off"));
  writer.write(file, of("at once"));
  writer.finish();
  EXPECT_EQ(kernel(), "at once");
}

TEST_F(TimelineWriting, finishes_without_a_thread) {
  hooks::install_host_hook([](std::string_view place) {
    if (place == "start a thread to write timelines")
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  TimelineWriter alone;
  alone.put_off(file, of("late"));
  EXPECT_EQ(files(), 0u);
  alone.finish();
  EXPECT_EQ(kernel(), "late");
}

TEST_F(TimelineWriting, that_fails_is_warned_of_with_file_and_reason) {
  test::Listener const listener;
  auto const missing = (folder / "missing" / "t.json").string();
  writer.put_off(missing, of("k"));
  writer.finish();
  writer.write(folder, of("k"));
  writer.write(file, []() -> Timeline { throw std::bad_alloc(); });
  auto const warnings = listener.warnings();
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("'" + missing + "': No such file"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("Is a directory"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[2].find("'" + file + "'"), std::string::npos) << warnings[2];
  EXPECT_EQ(files(), 0u);
}

TEST_F(TimelineWriting, follows_links_and_writes_into_pipes) {
  fs::create_symlink("target.json", folder / "link.json");
  std::ofstream(folder / "target.json") << "old";
  writer.write(folder / "link.json", of("linked"));
  EXPECT_TRUE(fs::is_symlink(folder / "link.json"));
  fs::rename(folder / "target.json", file);
  EXPECT_EQ(kernel(), "linked");
  auto const pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string text;
  std::thread reader([&] {
    std::ifstream in(pipe);
    text.assign(std::istreambuf_iterator<char>(in), {});
  });
  writer.write(pipe, of("piped"));
  reader.join();
  EXPECT_EQ(nlohmann::json::parse(text)["otherData"]["kernel"], "piped");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(TimelineWriting, is_finished_at_exit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const kept = testing::TempDir() + "timeline_at_exit.json";  // the child has another folder
  fs::remove(kept);
  EXPECT_EXIT(
      {
        writer.put_off(kept, of("first"));
        writer.put_off(kept, of("last"));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  std::ifstream in(kept);
  EXPECT_EQ(nlohmann::json::parse(in)["otherData"]["kernel"], "last");
  fs::remove(kept);
}

}  // namespace
}  // namespace meshpost::trace
