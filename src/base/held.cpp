#include "meshpost/base/held.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <memory>

namespace meshpost {
namespace {

constexpr mode_t mode_of_held = S_ISVTX | S_IRUSR | S_IWUSR;

bool was_held(struct stat const& status) {
  return S_ISREG(status.st_mode) && (status.st_mode & 07777) == mode_of_held &&
         status.st_uid == geteuid();
}

}  // namespace

void hold(Descriptor const& file) noexcept {
  // In this order: a process that finds the mode must find the lock as well.
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0 && fchmod(file.get(), mode_of_held) != 0)
    flock(file.get(), LOCK_UN);
}

void remove_unheld(char const* folder, std::string_view begin) noexcept {
  std::unique_ptr<DIR, int (*)(DIR*)> const all(opendir(folder), closedir);
  while (auto const* const entry = all ? readdir(all.get()) : nullptr) {
    int const there = dirfd(all.get());
    char const* const name = entry->d_name;
    struct stat status{};
    if (!std::string_view(name).starts_with(begin) ||
        fstatat(there, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !was_held(status))
      continue;
    // Not blocking: the name may be a pipe's by now.
    Descriptor const file(openat(there, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // A process that removes the file has this lock. So while the file has a name, it is the name
    // by which it was found.
    if (fstat(file.get(), &status) == 0 && was_held(status) && status.st_nlink == 1)
      unlinkat(there, name, 0);
  }
}

}  // namespace meshpost
