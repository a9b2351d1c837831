// What a killed process leaves in shared memory is removed, and nothing else.
#include "net/ofi/leftover.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace meshpost::net::test {
namespace {

using ofi::Leftover;

bool make_file(std::string const& name, bool mapped) {
  int const file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  bool const well = file >= 0 && ftruncate(file, 4096) == 0 &&
                    (!mapped || mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED);
  close(file);
  return well;
}

// A process that has made its file, as libfabric would, and waits to be killed.
class Peer {
 public:
  explicit Peer(bool mapped = true) {
    int ends[2] = {};
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char const well = make_file("/" + std::to_string(getpid()) + ":0:0", mapped) ? 1 : 0;
      if (write(ends[1], &well, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char well = 0;
    EXPECT_EQ(read(ends[0], &well, 1), 1);
    EXPECT_EQ(well, 1);
    close(ends[0]);
    close(ends[1]);
  }
  ~Peer() {
    end();
    shm_unlink(name().c_str());
  }
  Peer(Peer const&) = delete;
  Peer& operator=(Peer const&) = delete;

  std::string name() const { return "/" + std::to_string(pid_) + ":0:0"; }
  bool has_file() const { return std::filesystem::exists("/dev/shm" + name()); }
  void end() {
    if (over_) return;
    over_ = true;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  bool over_ = false;
};

TEST(Leftover, of_a_killed_process_is_removed_when_it_has_ended) {
  Peer peer;
  auto const one = Leftover::of(peer.name()), other = Leftover::of(peer.name());
  if (!one) GTEST_SKIP() << "the system has no pidfd_open(), or does not show others' maps";
  one->remove();
  EXPECT_TRUE(peer.has_file()) << "it lives";
  peer.end();
  one->remove();
  EXPECT_FALSE(peer.has_file());
  other->remove();
}

TEST(Leftover, that_somebody_made_anew_stays) {
  Peer peer;
  auto const one = Leftover::of(peer.name());
  peer.end();
  // While the old one is still there, so that it has another inode.
  auto const moved = peer.name() + ".moved";
  std::filesystem::rename("/dev/shm" + peer.name(), "/dev/shm" + moved);
  ASSERT_TRUE(make_file(peer.name(), false));
  if (one) one->remove();
  EXPECT_TRUE(peer.has_file());
  shm_unlink(moved.c_str());
}

TEST(Leftover, is_nothing_that_its_process_has_not_mapped_or_that_is_nobodys) {
  Peer peer(false);
  EXPECT_FALSE(Leftover::of(peer.name()));
  peer.end();
  EXPECT_FALSE(Leftover::of(peer.name()));
  for (auto const* const name : {"", "/", "/x", "/12", "/-1:0:0", "/0:0:0", "/:0:0"})
    EXPECT_FALSE(Leftover::of(name)) << name;
}

TEST(Leftover, has_the_name_that_the_address_says) {
  EXPECT_EQ(ofi::shared_memory_of(std::string("fi_shm://12:0:1\0\0", 17)), "/12:0:1");
  EXPECT_EQ(ofi::shared_memory_of("12:0:1"), "/12:0:1");
}

}  // namespace
}  // namespace meshpost::net::test
