// Data of a machine that are kept between processes.
#include "fabric/machine_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "machines.hpp"
#include "support/errors.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::Folder;
using test::says;
using test::Variable;

constexpr CalibrationOptions short_ones{Bytes{u64{1} << 20}, 1};
Machine cached_machine(std::vector<std::shared_ptr<Device>> const& devices) {
  return fabric::cached_machine(devices, short_ones);
}

std::string content(std::filesystem::path const& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Only CPU devices: calibration is the same code for all, and one second of it is enough.
class Cache : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "machine.json"; }
  // Acts as another process that has measured: with rates that no measurement gives.
  Machine planted() const {
    auto machine = discover(devices_);
    for (auto& link : machine.links) link.rate = 42;
    return machine;
  }
  // As a later version of the library may write it.
  std::string later() const {
    auto text = nlohmann::json::parse(to_json(planted()));
    text["version"] = Machine::current_version + 1;
    return text.dump();
  }
  void write(std::string const& text) const { std::ofstream(file()) << text; }

  Folder folder_;
  Variable chosen_{"MESHPOST_MACHINE", (folder_.path() / "machine.json").string()};
  test::Listener listener_;
  std::vector<std::shared_ptr<Device>> devices_ = open_devices("cpu:2");
};

TEST_F(Cache, is_written_once_and_read_from_then_on) {
  auto const first = cached_machine(devices_);
  EXPECT_EQ(machine_from_json(content(file())), first);
  EXPECT_GT(first.links.front().rate, 1e6);
  write(to_json(planted()));
  EXPECT_EQ(cached_machine(devices_), planted());
  EXPECT_TRUE(listener_.warnings().empty());
  for (auto const& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path(), file()) << "left behind";
}

TEST_F(Cache, lies_in_the_users_cache_without_a_variable) {
  Variable const none("MESHPOST_MACHINE", "");
  Variable const cache("XDG_CACHE_HOME", (folder_.path() / "deep" / "er").string());
  auto const machine = cached_machine(devices_);
  auto const kept = fabric::cache_file(machine.fingerprint);
  EXPECT_FALSE(kept.chosen);
  EXPECT_EQ(kept.path.parent_path(), folder_.path() / "deep" / "er" / "meshpost");
  EXPECT_EQ(machine_from_json(content(kept.path)), machine);
  EXPECT_NE(fabric::cache_file("another host").path, kept.path);
  {
    Variable const relative("XDG_CACHE_HOME", "relative");
    Variable const home("HOME", "/home/someone");
    EXPECT_EQ(fabric::cache_file("x").path.parent_path(), "/home/someone/.cache/meshpost");
    Variable const homeless("HOME", "");
    EXPECT_TRUE(fabric::cache_file("x").path.empty());
    EXPECT_GT(cached_machine(devices_).links.front().rate, 0);  // measured, and kept nowhere
  }
}

TEST_F(Cache, of_another_host_is_an_error_if_the_user_chose_it) {
  auto other = planted();
  other.fingerprint = "elsewhere, 4 cores of something";
  write(to_json(other));
  EXPECT_TRUE(says(error_of([&] { cached_machine(devices_); }), Kind::bad_environment,
                   {"MESHPOST_MACHINE=" + file().string(), "elsewhere", "unset MESHPOST_MACHINE"}));
  EXPECT_EQ(error_of([&] { measure_machine(devices_, short_ones); }).kind(), Kind::bad_environment);
  EXPECT_EQ(machine_from_json(content(file())), other) << "the user's file is left alone";
}

TEST_F(Cache, of_another_host_is_measured_anew_if_nobody_chose_it) {
  Variable const none("MESHPOST_MACHINE", "");
  Variable const cache("XDG_CACHE_HOME", folder_.path().string());
  auto other = planted();
  auto const path = fabric::cache_file(other.fingerprint).path;
  other.fingerprint = "elsewhere";
  fabric::store(other, path);
  auto const machine = cached_machine(devices_);
  EXPECT_NE(machine.links.front().rate, 42);
  EXPECT_EQ(machine_from_json(content(path)), machine);
}

TEST_F(Cache, with_more_devices_serves_for_some_of_them) {
  write(to_json(planted()));
  auto const one = std::vector{devices_.back()};
  auto const machine = cached_machine(one);
  EXPECT_EQ(machine.fingerprint, fingerprint(one));
  EXPECT_FALSE(machine.find({"cpu", 0}));
  ASSERT_TRUE(machine.find({"cpu", 1}));
  auto expected = discover(one);
  for (auto& link : expected.links) link.rate = 42;
  EXPECT_EQ(machine, expected);
}

TEST_F(Cache, with_fewer_devices_is_an_error) {
  write(to_json(discover({devices_.front()})));
  EXPECT_TRUE(says(error_of([&] { cached_machine(devices_); }), Kind::bad_environment, {"cpu:1"}));
}

TEST_F(Cache, that_is_corrupt_or_of_another_version_is_measured_anew_with_a_warning) {
  Variable const none("MESHPOST_MACHINE", "");
  Variable const cache("XDG_CACHE_HOME", folder_.path().string());
  auto const path = fabric::cache_file(fingerprint(devices_)).path;
  std::filesystem::create_directories(path.parent_path());
  std::vector<std::string> const wrong = {
      "", "{", "null", "[]", std::string(100, '\0'), later(), to_json(planted()).substr(0, 300)};
  for (u32 i = 0; i < wrong.size(); ++i) {
    std::ofstream(path) << wrong[i];
    EXPECT_NE(cached_machine(devices_).links.front().rate, 42);
    ASSERT_EQ(listener_.warnings().size(), i + 1);
    EXPECT_NE(listener_.warnings().back().find(path.string()), std::string::npos);
    EXPECT_NO_THROW(machine_from_json(content(path))) << "mended";
  }
}

TEST_F(Cache, that_the_user_chose_and_is_of_another_version_is_measured_anew_with_a_warning) {
  auto impossible = planted();
  impossible.links.front().latency = -1;
  std::vector<std::string> const wrong = {later(), to_json(impossible)};
  for (u32 i = 0; i < wrong.size(); ++i) {
    write(wrong[i]);
    EXPECT_NE(cached_machine(devices_).links.front().rate, 42);
    ASSERT_EQ(listener_.warnings().size(), i + 1);
    EXPECT_NE(listener_.warnings().back().find(file().string()), std::string::npos);
    EXPECT_NO_THROW(machine_from_json(content(file()))) << "mended";
  }
}

TEST_F(Cache, that_the_user_chose_and_is_no_machine_file_is_refused_and_left_alone) {
  for (std::string const& text :
       {std::string("measure the disks on Monday\n"), std::string("{\"version\": 1}"),
        std::string("[1, 2]"), std::string(), to_json(planted()).substr(0, 300)}) {
    write(text);
    auto const refused = [&](Error const& error) {
      return says(error, Kind::bad_environment,
                  {"MESHPOST_MACHINE=" + file().string(), "not a machine file", "unset"});
    };
    EXPECT_TRUE(refused(error_of([&] { cached_machine(devices_); })));
    EXPECT_TRUE(refused(error_of([&] { measure_machine(devices_, short_ones); })));
    EXPECT_EQ(content(file()), text);
  }
  Variable const folder("MESHPOST_MACHINE", folder_.path().string());
  EXPECT_TRUE(says(error_of([&] { cached_machine(devices_); }), Kind::bad_environment,
                   {"not a regular file"}));
  EXPECT_TRUE(listener_.warnings().empty());
}

TEST_F(Cache, is_replaced_by_what_is_measured_again) {
  write(to_json(planted()));
  auto const machine = measure_machine(devices_, short_ones);
  EXPECT_NE(machine.links.front().rate, 42);
  EXPECT_EQ(machine_from_json(content(file())), machine);
}

TEST_F(Cache, that_cannot_be_written_is_a_warning) {
  // A file in the place of the folder: it stops even the superuser.
  std::ofstream(folder_.path() / "plain") << "x";
  Variable const blocked("MESHPOST_MACHINE", (folder_.path() / "plain" / "m.json").string());
  EXPECT_GT(cached_machine(devices_).links.front().rate, 0);
  ASSERT_EQ(listener_.warnings().size(), 1u);
  EXPECT_NE(listener_.warnings()[0].find("measures again"), std::string::npos);
  if (geteuid() == 0) return;  // for whom no folder is read-only
  chmod(folder_.path().c_str(), 0500);
  cached_machine(devices_);
  EXPECT_EQ(listener_.warnings().size(), 2u);
}

TEST_F(Cache, is_read_whole_while_others_write_it) {
  write(to_json(planted()));
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) fabric::store(planted(), file());
    });
  for (int reader = 0; reader < 2; ++reader)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(cached_machine(devices_), planted());
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(listener_.warnings().empty());
}

TEST_F(Cache, of_a_host_alone_keeps_how_it_copies) {
  std::vector<HostRates> const measured{{Bytes{1 << 20}, {1, 2, 3, 4, 5}}};
  {
    Variable const none("MESHPOST_MACHINE", "");
    Variable const cache("XDG_CACHE_HOME", folder_.path().string());
    auto const kept = fabric::host_file();
    EXPECT_FALSE(fabric::kept_host_rates(kept));
    fabric::keep_host_rates(measured, kept);
    EXPECT_EQ(fabric::kept_host_rates(kept), measured);
    EXPECT_NE(kept.path, fabric::cache_file(fingerprint(devices_)).path);
  }
  EXPECT_FALSE(fabric::kept_host_rates(fabric::host_file())) << "it is not there yet";
  auto machine = planted();
  machine.host_copies = measured;
  write(to_json(machine));
  EXPECT_EQ(fabric::kept_host_rates(fabric::host_file()), measured);
  machine.fingerprint = "elsewhere";
  for (auto const& text : {to_json(machine), std::string("notes")}) {
    write(text);
    EXPECT_FALSE(fabric::kept_host_rates(fabric::host_file()));
    EXPECT_EQ(content(file()), text);
  }
  EXPECT_TRUE(listener_.warnings().empty());
}

TEST_F(Cache, this_machine_is_one_object_for_all_threads) {
  write(to_json(planted()));
  std::vector<Machine const*> seen(4, nullptr);
  std::vector<std::thread> threads;
  for (auto& one : seen) threads.emplace_back([&] { one = &this_machine(devices_); });
  for (auto& thread : threads) thread.join();
  for (auto const* const one : seen) EXPECT_EQ(one, seen.front());
  EXPECT_EQ(*seen.front(), planted());
  std::filesystem::remove(file());
  EXPECT_EQ(&this_machine(devices_), seen.front()) << "kept for the process";
}

}  // namespace
}  // namespace meshpost
