#include "supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>

#include "rendezvous.hpp"
#include "surroundings.hpp"

namespace meshpost::launch {
namespace {

using std::chrono::seconds;

constexpr std::chrono::milliseconds until_sure{50};  // which process failed first
constexpr seconds grace{2};         // for the others to notice, and to say what they know
constexpr seconds until_killed{3};  // from SIGTERM on

}  // namespace

Supervisor::Supervisor(Options const& options)
    : options_(options), output_(options.processes, options.label) {
  // What the processes started becomes this process's when they end: else nobody here could tell
  // when it is gone.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Supervisor::~Supervisor() {
  signal_all(SIGKILL);
  for (auto const& member : members_)  // and those of its group, which are this process's by now
    while (::waitpid(-member.pid, nullptr, 0) > 0 || errno == EINTR) continue;
}

int Supervisor::run() {
  auto const files = raise_file_limit();
  if (!options_.logs.empty()) logs_ = open_logs(options_.logs, options_.processes);
  enter(options_.folder);
  if (options_.timeout)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(*options_.timeout));
  start_all(files);
  loop();
  return status_.value_or(0);
}

void Supervisor::start_all(rlimit const& files) {
  keep_outer_listener_back();
  auto rendezvous = listen_here();
  Job const job{options_.processes, options_.nodes, rendezvous.address, fresh_secret(),
                options_.variables};
  auto const inherited = inherited_environment();
  for (u32 k = 0; k < options_.processes; ++k) {
    Process const process{k, rendezvous.listener.get()};
    Spawn const spawn{options_.command, child_environment(inherited, job, process),
                      k > 0              ? Input::nothing
                      : ::isatty(0) == 1 ? Input::pipe
                                         : Input::inherited,
                      process.listener, files};
    try {
      auto child = start(spawn);
      guard_.watch(child.pid);
      members_.push_back({k, child.pid, false});
      ++running_;
      output_.add(k, child, logs_.empty() ? Fd() : std::move(logs_[k]));
      if (child.input) typed_.to(std::move(child.input));
    } catch (NotStarted const& error) {
      if (k == 0) throw;
      output_.say(fmt::format("start process {} of {}: {}", k, options_.processes, error.what()));
      output_.say(
          fmt::format("ending {}, which {} started", still_running(), k == 1 ? "was" : "were"));
      status_ = error.status();
      return terminate();
    }
    rendezvous.listener.close();  // process 0 has it
  }
}

void Supervisor::loop() {
  Poller poller;
  bool waits_for_rest = false;
  while (running_ > 0 || output_.open() || output_.pending()) {
    if (running_ == 0 && !waits_for_rest) {  // what they started may still print
      waits_for_rest = true;
      next_step_ = Clock::now() + grace;
    }
    poller.watch(signals_.fd(), POLLIN, [this] { on_signals(); });
    output_.watch(poller);
    if (running_ > 0) typed_.watch(poller);
    auto until = next_step_;
    if (timeout_ && (!until || *timeout_ < *until)) until = timeout_;
    poller.wait(until);
    on_time();
    if (output_.failure() != 0 && !broken_) on_broken_output();
  }
}

void Supervisor::on_signals() {
  while (auto const info = signals_.next()) {
    auto const number = static_cast<int>(info->ssi_signo);
    if (number == SIGCHLD) collect(static_cast<pid_t>(info->ssi_pid));
    else on_signal(number);
  }
}

// Several ends may come as one signal, which then tells of the first.
void Supervisor::collect(pid_t first) {
  auto const member = std::find_if(members_.begin(), members_.end(),
                                   [&](auto const& one) { return one.pid == first; });
  if (member != members_.end()) collect(*member);
  else if (first != guard_.pid()) ::waitpid(first, nullptr, WNOHANG);  // started by one of them
  for (auto& one : members_) collect(one);
  if (running_ == 0) announce();
}

void Supervisor::collect(Member& member) {
  siginfo_t how{};
  if (member.ended ||
      ::waitid(P_PID, static_cast<id_t>(member.pid), &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      how.si_pid == 0)
    return;
  member.ended = true;
  --running_;
  output_.drain(member.number);  // its last words come before what is said of it
  if (how.si_code != CLD_EXITED || how.si_status != 0) failed(member, how);
}

// A process's connections close before the launcher is told of its end: those that notice may be
// told of first. So one that a signal killed goes before those that ended by themselves just then.
void Supervisor::failed(Member const& member, siginfo_t const& how) {
  bool const by_signal = how.si_code != CLD_EXITED;
  if (status_ && !(ending_ == Ending::noticed && by_signal && !first_.by_signal)) return;
  status_ = by_signal ? 128 + how.si_status : how.si_status;
  first_ = {by_signal, fmt::format("process {} (pid {}) ", member.number, member.pid)};
  if (!by_signal) first_.said += fmt::format("ended with status {}", how.si_status);
  else if (passed_.contains(how.si_status)) first_.said.clear();  // the user knows
  else
    first_.said +=
        fmt::format("was killed by signal {} ({})", how.si_status, ::strsignal(how.si_status));
  if (ending_ != Ending::none) return;
  ending_ = Ending::noticed;
  next_step_ = Clock::now() + until_sure;
}

void Supervisor::announce() {
  if (!first_.said.empty()) output_.say(first_.said + (running_ > 0 ? "; ending the others" : ""));
  first_.said.clear();
}

void Supervisor::on_signal(int number) {
  if (number == SIGTSTP) return stop_and_continue();
  if (number == SIGUSR1 || number == SIGUSR2) return signal_all(number);
  if (running_ == 0) {  // only output is left, and who reads it is slow
    if (!status_) status_ = 128 + number;
    return give_up();
  }
  auto const name = fmt::format("SIG{}", ::sigabbrev_np(number));
  if (passed_.insert(number).second) {
    output_.say(fmt::format("{} is passed on to {}; once more kills them", name, still_running()));
    return signal_all(number);
  }
  output_.say(fmt::format("{} again: killed {}", name, still_running()));
  if (!status_) status_ = 128 + number;
  kill();
}

void Supervisor::on_time() {
  auto const now = Clock::now();
  if (timeout_ && now >= *timeout_) {
    timeout_.reset();
    if (!status_) {
      status_ = 124;
      output_.say(fmt::format("the job has taken the {} s of --timeout; ending {}",
                              *options_.timeout, running_ ? still_running() : "its output"));
    }
    if (running_ == 0) return give_up();
    if (ending_ < Ending::terminated) terminate();
  }
  if (!next_step_ || now < *next_step_) return;
  next_step_.reset();
  if (running_ == 0) {
    if (!output_.open()) return;
    output_.say("ended what the processes had started and left running");
    signal_all(SIGKILL);
    output_.close();
  } else if (ending_ == Ending::noticed) {
    announce();
    ending_ = Ending::grace;
    next_step_ = now + grace;
  } else if (ending_ == Ending::grace) {
    output_.say(fmt::format("SIGTERM to {}, {} s after that", still_running(), grace.count()));
    terminate();
  } else if (ending_ == Ending::terminated) {
    output_.say(
        fmt::format("SIGKILL to {}, {} s after SIGTERM", still_running(), until_killed.count()));
    kill();
  }
}

void Supervisor::on_broken_output() {
  broken_ = true;
  if (output_.failure() != EPIPE)  // else as others do: | head is no reason for messages
    output_.say(fmt::format("standard output can't be written: {}; ending the job",
                            std::strerror(output_.failure())));
  if (!status_) status_ = output_.failure() == EPIPE ? 128 + SIGPIPE : 1;
  if (ending_ < Ending::terminated && running_ > 0) terminate();
}

// Ctrl-Z and fg: the processes are in groups of their own, which the shell does not know.
void Supervisor::stop_and_continue() {
  signal_all(SIGSTOP);
  ::raise(SIGSTOP);
  signal_all(SIGCONT);
}

void Supervisor::terminate() {
  announce();
  ending_ = Ending::terminated;
  next_step_ = Clock::now() + until_killed;
  signal_all(SIGTERM);
}

void Supervisor::kill() {
  announce();
  ending_ = Ending::killed;
  next_step_.reset();
  signal_all(SIGKILL);
}

void Supervisor::signal_all(int number) {
  for (auto const& member : members_) ::kill(-member.pid, number);
}

void Supervisor::give_up() {
  signal_all(SIGKILL);
  output_.close();
  output_.discard();
}

std::string Supervisor::still_running() const {
  std::string text;
  u32 count = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].ended) continue;
    auto last = i;
    while (last + 1 < members_.size() && !members_[last + 1].ended) ++last;
    text += fmt::format("{}{}", count > 0 ? ", " : "", members_[i].number);
    if (last > i) text += fmt::format("{}{}", last > i + 1 ? "-" : ", ", members_[last].number);
    count += static_cast<u32>(last - i + 1);
    i = last;
  }
  return (count == 1 ? "process " : "processes ") + text;
}

}  // namespace meshpost::launch
