// Files held by a process are removed after its end, and no others.
#include "meshpost/base/held.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

namespace meshpost {
namespace {

class Held : public testing::Test {
 protected:
  Held() {
    std::string name = testing::TempDir() + "meshpost-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~Held() override { std::filesystem::remove_all(folder_); }

  std::string path(char const* name) const { return folder_ / name; }
  Descriptor make(char const* name) const {
    return Descriptor(open(path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  void leave(char const* name) const { hold(make(name)); }
  void sweep() const { remove_unheld(folder_.c_str(), "ours"); }
  bool is_there(char const* name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path(name)));
  }

  std::filesystem::path folder_;
};

TEST_F(Held, stay_while_somebody_has_them_open) {
  auto file = make("ours");
  hold(file);
  Descriptor copy(dup(file.get()));
  file.close();
  sweep();
  EXPECT_TRUE(is_there("ours"));
  copy.close();
  sweep();
  EXPECT_FALSE(is_there("ours"));
}

TEST_F(Held, go_with_a_process_that_is_killed) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  pid_t const process = fork();
  if (process == 0) {
    auto const file = make("ours");
    hold(file);
    if (write(ends[1], "", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char said = 0;
  ASSERT_EQ(read(ends[0], &said, 1), 1);
  sweep();
  EXPECT_TRUE(is_there("ours")) << "it lives";
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  sweep();
  EXPECT_FALSE(is_there("ours"));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Held, are_only_files_that_somebody_has_held) {
  make("ours");
  leave("ours-executable"), chmod(path("ours-executable").c_str(), 0700);
  leave("ours-of-all"), chmod(path("ours-of-all").c_str(), S_ISVTX | 0666);
  leave("ours-twice"), std::filesystem::create_hard_link(path("ours-twice"), path("second"));
  leave("others");
  std::filesystem::create_symlink(path("others"), path("ours-link"));
  ASSERT_EQ(mkdir(path("ours-folder").c_str(), 0), 0);
  chmod(path("ours-folder").c_str(), S_ISVTX | 0600);
  ASSERT_EQ(mkfifo(path("ours-pipe").c_str(), 0600), 0);
  chmod(path("ours-pipe").c_str(), S_ISVTX | 0600);
  sweep();
  for (auto const* const name : {"ours", "ours-executable", "ours-of-all", "ours-twice", "others",
                                 "ours-link", "ours-folder", "ours-pipe"})
    EXPECT_TRUE(is_there(name)) << name;
}

TEST_F(Held, of_another_user_stay) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  leave("ours");
  ASSERT_EQ(chown(path("ours").c_str(), 12345, 12345), 0);
  chmod(path("ours").c_str(), S_ISVTX | 0600);
  sweep();
  EXPECT_TRUE(is_there("ours"));
}

TEST_F(Held, may_be_looked_for_where_there_is_no_folder) {
  remove_unheld(path("none").c_str());
  hold(Descriptor());
}

}  // namespace
}  // namespace meshpost
