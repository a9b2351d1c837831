#include "world/open_files.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace meshpost {
namespace {

// At process 0, four for each other process: its connection, its Unix socket, and two of an engine.
// The others are for devices and the program itself.
rlim_t enough_for(u32 processes) { return 256 + 4 * rlim_t{processes}; }

rlimit limit_of_files() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return files;
}

}  // namespace

void make_room_for_files(u32 processes) {
  auto files = limit_of_files();
  auto const wanted = std::min(enough_for(processes), files.rlim_max);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &files);
}

bool is_lack_of_files(int error) {
  return error == EMFILE || error == ENFILE || error == ETOOMANYREFS || error == ENOBUFS ||
         error == ENOMEM;
}

Error lack_of_files(std::string operation, std::string const& cause, int error, u32 processes) {
  auto const why = fmt::format("{}: {}", cause, std::strerror(error));
  if (error != EMFILE && error != ETOOMANYREFS)
    return {Kind::bad_environment, std::move(operation), why,
            "end other programs, or raise the host's limits (sysctl fs.file-max, or memory)"};
  return {Kind::bad_environment, std::move(operation),
          fmt::format("{} (this process may have {})", why, limit_of_files().rlim_cur),
          fmt::format("raise the limit of open files (ulimit -n); {} would do for {} {}",
                      enough_for(processes), processes, processes == 1 ? "process" : "processes")};
}

}  // namespace meshpost
