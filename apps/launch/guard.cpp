#include "guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "meshpost/base/held.hpp"
#include "poller.hpp"

namespace meshpost::launch {
namespace {

constexpr std::chrono::seconds to_end{2};  // time for killed processes to end

[[noreturn]] void stand_by(int news) {
  ::prctl(PR_SET_NAME, "meshpost-guard");
  ::setsid();  // leaves the launcher's group, so a terminal's signals do not reach it
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::dup2(news, 0);
  int const nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  ::close_range(3, ~0u, 0);  // it must not keep pipes and sockets of others open
  if (::chdir("/") != 0) ::_exit(1);
  std::vector<pid_t> leaders;
  pid_t leader = 0;
  while (::read(0, &leader, sizeof leader) == sizeof leader) leaders.push_back(leader);
  for (pid_t const one : leaders) ::kill(-one, SIGKILL);
  auto const until = Clock::now() + to_end;  // if nobody reaps them, they stay in their groups
  for (pid_t const one : leaders)
    while (::kill(-one, 0) == 0 && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  remove_unheld(shared_memory_folder);
  ::_exit(0);
}

}  // namespace

Guard::Guard() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw system_error("start the job: pipe", "raise ulimit -n");
  Fd const read_end(ends[0]);
  news_ = Fd(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0)
    throw system_error("start the job: fork", "raise the limit of processes (ulimit -u)");
  if (pid_ == 0) {
    news_.close();
    stand_by(read_end.get());
  }
}

Guard::~Guard() {  // the launcher has ended the groups; their numbers may be in use again
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void Guard::watch(pid_t leader) {
  if (::write(news_.get(), &leader, sizeof leader) < 0)
    return;  // the guard was killed: go on without it
}

}  // namespace meshpost::launch
