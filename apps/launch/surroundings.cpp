#include "surroundings.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>

namespace meshpost::launch {

rlimit raise_file_limit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  rlimit const most{files.rlim_max, files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &most);
  return files;
}

std::vector<Fd> open_logs(std::string const& folder, u32 processes) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(Kind::bad_argument, fmt::format("make the folder {} of --logs", folder),
                error.message(), "name another folder");
  std::vector<Fd> logs;
  for (u32 k = 0; k < processes; ++k) {
    auto const path = fmt::format("{}/process-{}.log", folder, k);
    logs.emplace_back(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!logs.back())
      throw Error(Kind::bad_argument, fmt::format("write {}", path), std::strerror(errno),
                  "name another folder with --logs");
  }
  return logs;
}

void enter(std::string const& folder) {
  if (folder.empty() || ::chdir(folder.c_str()) == 0) return;
  throw Error(Kind::bad_argument, fmt::format("start in --wdir {}", folder), std::strerror(errno),
              "name a folder that is there");
}

std::string own_program() {
  std::error_code error;
  auto const path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "meshpost-run" : path.string();
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

void open_standard_streams() {
  int fd = 0;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

}  // namespace meshpost::launch
