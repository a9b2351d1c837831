#include "system.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

namespace meshpost::launch {

rlimit raise_file_limit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  rlimit const most{files.rlim_max, files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &most);
  return files;
}

void open_standard_streams() {
  int fd = 0;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  auto const name_ends = text.rfind(") ");  // "PID (NAME) STATE ..."
  return name_ends == std::string::npos || name_ends + 2 >= text.size() ? '\0'
                                                                        : text[name_ends + 2];
}

Signals::Signals() {
  ::signal(SIGCHLD, SIG_DFL);  // it may be ignored by inheritance: then no end would be reported
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  // A signal that was ignored when this process started, as by nohup, remains ignored.
  for (int const number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP})
    ::sigaddset(&set, number);
  // Then reading a terminal from the background fails, and does not stop this process.
  sigset_t blocked = set;
  ::sigaddset(&blocked, SIGTTIN);
  ::sigaddset(&blocked, SIGTTOU);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw system_error("start the job: signalfd", "raise ulimit -n");
}

std::optional<signalfd_siginfo> Signals::next() {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

}  // namespace meshpost::launch
