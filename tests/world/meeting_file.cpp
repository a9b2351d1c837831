// The processes of one host find each other by a file. It is private, and harmless when it is old.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "meshpost/base/held.hpp"
#include "world/players.hpp"

namespace meshpost {
namespace {

using namespace test;

class MeetingFile : public testing::Test {
 protected:
  MeetingFile() {
    std::string name = testing::TempDir() + "meshpost-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "meeting";
    jobs_ = make_jobs(3);
    close(jobs_[0].listener);
    for (auto& job : jobs_) {
      job.listener = -1;
      job.secret.clear();
      job.rendezvous = "file:" + path_.string();
    }
  }
  ~MeetingFile() override { std::filesystem::remove_all(folder_); }
  void write(std::string const& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  std::filesystem::path folder_, path_;
  std::vector<Job> jobs_;
};

TEST_F(MeetingFile, brings_processes_together_is_private_and_goes) {
  auto second = joining(jobs_[1]), first = joining(jobs_[0]);
  struct stat status{};
  EXPECT_TRUE(comes_true([&] { return stat(path_.c_str(), &status) == 0; }));
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  auto third = joining(jobs_[2]);
  expect_none({first.get(), second.get(), third.get()});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(MeetingFile, goes_too_when_nobody_comes) {
  jobs_[0].timeout = 50ms;
  EXPECT_TRUE(says(error_of_joining(jobs_[0]), Kind::deadline,
                   {"missing: process 1, process 2", "MESHPOST_RENDEZVOUS=file:PATH"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// As if a launcher's wrapper forks: each process uses another name for the file.
TEST_F(MeetingFile, that_is_not_there_is_named_with_how_to_name_one) {
  jobs_[1].timeout = 50ms;
  EXPECT_TRUE(says(error_of_joining(jobs_[1]), Kind::deadline,
                   {path_.string(), "there is no such file", "MESHPOST_RENDEZVOUS=file:PATH"}));
}

TEST_F(MeetingFile, of_an_earlier_job_does_no_harm) {
  Port const nobody(false);
  for (auto const& text : {nobody.address() + " " + Secret(random_bytes()).hex() + "\n",
                           std::string(), std::string("127.0.0.1:1"), std::string("no address ")}) {
    write(text);
    auto second = joining(jobs_[1]), third = joining(jobs_[2]);
    EXPECT_NE(second.wait_for(50ms), std::future_status::ready);
    auto first = joining(jobs_[0]);
    expect_none({first.get(), second.get(), third.get()});
  }
  close(nobody.socket);
}

// As with launchers that have no name for a job: each file has another name.
TEST_F(MeetingFile, of_an_earlier_job_goes_and_that_of_one_that_others_still_join_stays) {
  auto const path = [&](char const* name) {
    return (folder_ / ("meshpost-" + std::to_string(geteuid()) + "-")).string() + name;
  };
  auto const text = "127.0.0.1:1 " + Secret(random_bytes()).hex() + "\n";
  auto const stays = write_private_file(path("7"), text);
  write_private_file(path("8"), text);  // and releases it, like a process that is killed
  std::ofstream(path("own")) << "the user's";
  for (auto& job : jobs_) job.rendezvous = "file:" + path("9");
  auto second = joining(jobs_[1]), third = joining(jobs_[2]), first = joining(jobs_[0]);
  expect_none({first.get(), second.get(), third.get()});
  for (auto const* const name : {"7", "own"}) EXPECT_TRUE(std::filesystem::exists(path(name)));
  for (auto const* const name : {"8", "9"}) EXPECT_FALSE(std::filesystem::exists(path(name)));
}

// As long as others may come, also when another job begins then.
TEST_F(MeetingFile, is_held_until_all_have_come) {
  for (auto& job : jobs_)
    job.rendezvous =
        "file:" + (folder_ / ("meshpost-" + std::to_string(geteuid()) + "-1")).string();
  auto first = joining(jobs_[0]);
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(jobs_[0].rendezvous.substr(5)); }));
  remove_unheld(folder_.c_str());
  auto second = joining(jobs_[1]), third = joining(jobs_[2]);
  expect_none({first.get(), second.get(), third.get()});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// The port of the earlier job belongs to another process now. That one sends garbage, is of another
// job, or says nothing at all.
TEST_F(MeetingFile, whose_port_has_another_owner_by_now_does_no_harm) {
  for (auto const& words : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), denial}) {
    UnauthenticatedPeer const peer(words);
    write(peer.address() + " " + Secret(random_bytes()).hex() + "\n");
    auto second = joining(jobs_[1]), third = joining(jobs_[2]);
    EXPECT_TRUE(comes_true([&] { return peer.calls() > 3; }));
    auto first = joining(jobs_[0]);
    expect_none({first.get(), second.get(), third.get()});
  }
}

TEST_F(MeetingFile, that_others_may_read_is_refused) {
  write("127.0.0.1:4711 " + Secret(random_bytes()).hex() + "\n", 0644);
  EXPECT_TRUE(says(error_of_joining(jobs_[1]), Kind::bad_environment,
                   {path_.string(), "others may use it: it has mode 644, not 600", "chmod 600"}));
}

TEST_F(MeetingFile, in_a_folder_that_is_not_there_is_refused) {
  jobs_[0].rendezvous = "file:" + (folder_ / "none" / "meeting").string();
  EXPECT_TRUE(says(error_of_joining(jobs_[0]), Kind::bad_environment,
                   {"none/meeting", "can't be written: No such file"}));
}

TEST_F(MeetingFile, tells_numbers_taken_at_once) {
  for (auto& job : jobs_) job.timeout = std::chrono::hours(1);
  std::vector<std::future<std::optional<Error>>> all;
  for (u32 const process : {0u, 1u, 1u}) all.push_back(joining(jobs_[process]));
  for (auto& one : all) {
    auto const told = one.get();
    ASSERT_TRUE(told);
    EXPECT_TRUE(says(*told, Kind::bad_environment, {"number 1 is taken"}));
  }
}

}  // namespace
}  // namespace meshpost
