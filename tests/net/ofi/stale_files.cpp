// Shared memory of a killed process is removed, and nothing else.
#include "net/ofi/stale_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "net/engine.hpp"
#include "support/job.hpp"
#include "support/stale.hpp"

namespace meshpost::net::test {
namespace {

using meshpost::test::is_removed;

std::string file(std::string const& name) { return "/dev/shm" + name; }
bool exists(std::string const& name) { return std::filesystem::exists(file(name)); }

meshpost::test::Role const stale_files_role("engine_over_shm", [] {
  auto const engine = make_engine("ofi:shm", "");
  meshpost::test::say("number " + std::to_string(getpid()) + " holds it");
  for (;;) pause();
});

// Kills a process that has made an engine over shm, and returns the name of its file. From then on
// any process of another test may remove the file.
std::string kill_one_with_an_engine() {
  meshpost::test::Job job("engine_over_shm", 1);
  auto const& out = job.wait_for(0, " holds it");
  auto const number = out.substr(out.find("number ") + 7);
  auto const name = "/" + number.substr(0, number.find(' ')) + ":0:0";
  ofi::remove_stale_files();
  EXPECT_TRUE(exists(name)) << "it was removed while it was in use, or never made";
  job.kill(0);
  job.wait();
  return name;
}

TEST(StaleFiles, of_a_killed_process_is_removed) {
  auto const name = kill_one_with_an_engine();
  ofi::remove_stale_files();
  EXPECT_TRUE(is_removed(file(name)));
}

TEST(StaleFiles, of_a_killed_process_is_removed_by_the_next_engine) {
  auto const name = kill_one_with_an_engine();
  auto const engine = make_engine("ofi:shm", "");
  EXPECT_TRUE(is_removed(file(name)));
}

TEST(StaleFiles, is_nothing_that_nobody_held) {
  auto const name = "/" + std::to_string(getpid()) + ":7:7";
  close(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  ofi::remove_stale_files();
  EXPECT_TRUE(exists(name)) << "it may be another program's";
  ofi::hold_shared_memory(name);  // and releases it at once
  ofi::remove_stale_files();
  EXPECT_TRUE(is_removed(file(name)));
}

TEST(StaleFiles, has_the_name_that_the_address_says) {
  EXPECT_EQ(ofi::shared_memory_of(std::string("fi_shm://12:0:1\0\0", 17)), "/12:0:1");
  EXPECT_EQ(ofi::shared_memory_of("12:0:1"), "/12:0:1");
}

}  // namespace
}  // namespace meshpost::net::test
