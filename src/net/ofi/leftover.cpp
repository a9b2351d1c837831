#include "net/ofi/leftover.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace meshpost::net::ofi {
namespace {

bool has_ended(Descriptor const& process) {
  pollfd one{process.get(), POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

Descriptor open_shared(std::string const& name) {
  return Descriptor(shm_open(name.c_str(), O_RDONLY, 0));
}

bool maps(int process, dev_t device, ino_t inode) {
  std::ifstream lines("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(lines, line);) {
    unsigned high = 0, low = 0;
    unsigned long number = 0;
    // Addresses, permissions, offset, device, inode.
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &high, &low, &number) == 3 &&
        makedev(high, low) == device && number == inode)
      return true;
  }
  return false;
}

}  // namespace

std::string shared_memory_of(std::string const& native) {
  std::string const text = native.c_str();  // up to its end; "fi_shm://" and the name
  auto const prefix = text.find("://");
  return "/" + (prefix == std::string::npos ? text : text.substr(prefix + 3));
}

std::optional<Leftover> Leftover::of(std::string const& name) {
  char* end = nullptr;
  long const number = name.empty() ? 0 : std::strtol(name.c_str() + 1, &end, 10);
  if (number <= 0 || *end != ':') return std::nullopt;
  Descriptor process(
      static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(number), 0)));  // Linux 5.3
  auto const file = open_shared(name);
  struct stat status{};
  if (!process || !file || fstat(file.get(), &status) != 0 || status.st_uid != geteuid())
    return std::nullopt;
  if (!maps(static_cast<int>(number), status.st_dev, status.st_ino) || has_ended(process))
    return std::nullopt;  // if it lives still, what was read is its own
  return Leftover(name, std::move(process), status.st_dev, status.st_ino);
}

void Leftover::remove() const noexcept {
  if (!has_ended(process_)) return;
  auto const file = open_shared(name_);
  struct stat status{};
  // Of several survivors one removes it, so that nothing comes between these lines.
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  auto const again = open_shared(name_);
  if (!again || fstat(again.get(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) shm_unlink(name_.c_str());
}

}  // namespace meshpost::net::ofi
