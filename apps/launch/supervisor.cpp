#include "supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "environment.hpp"
#include "rendezvous.hpp"

namespace meshpost::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds until_sure{50};  // time to learn which process failed first
constexpr seconds grace{2};             // time for the others to notice and to print their errors
constexpr seconds until_killed{3};      // time from SIGTERM to SIGKILL

}  // namespace

Supervisor::Supervisor(Options const& options)
    : options_(options),
      files_(raise_file_limit()),
      output_(options.processes, options.label, open_logs(options.logs, options.processes)),
      members_(options.processes, {0, false}),
      children_(*this) {}

int Supervisor::run() {
  if (options_.timeout)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(*options_.timeout));
  keep_outer_listener_back();
  start();
  loop();
  return status_.value_or(0);
}

void Supervisor::start() {
  auto rendezvous = listen_here();
  Job const job{options_.processes, options_.nodes, rendezvous.address, fresh_secret(),
                options_.variables};
  auto const inherited = inherited_environment();
  auto const input_of_0 = ::isatty(0) == 1 ? Input::pipe : Input::inherited;
  for (u32 k = 0; k < options_.processes; ++k) {
    Process const process{k, rendezvous.listener.get()};
    try {
      auto const pid =
          children_.start(k, {options_.command, child_environment(inherited, job, process),
                              k == 0 ? input_of_0 : Input::nothing, process.listener, files_});
      members_[k] = {pid, true};
      ++running_;
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
  while (running_ > 0 || children_.open() || output_.pending()) {
    if (running_ == 0 && !waits_for_rest) {  // their descendants may still print
      waits_for_rest = true;
      next_step_ = Clock::now() + grace;
    }
    poller.watch(signals_.fd(), POLLIN, [this] { on_signals(); });
    children_.watch(poller);
    output_.watch(poller);
    auto until = next_step_;
    if (timeout_ && (!until || *timeout_ < *until)) until = timeout_;
    poller.wait(until);
    on_time();
    if (output_.failure() != 0 && !broken_) on_broken_output();
  }
}

// -- output and ends of processes

void Supervisor::printed(u32 process, int stream, std::string_view bytes) {
  if (!forgets_) output_.add(process, stream, bytes);
}

void Supervisor::printed_all(u32 process, int stream) { output_.end(process, stream); }

void Supervisor::ended(u32 process, End end) {
  members_[process].runs = false;
  --running_;
  if (end.by_signal || end.number != 0) failed(process, end);
  if (running_ == 0) announce();
}

// A process's connections close before the launcher learns of its end. So the launcher may learn
// first of processes that ended because of it. So a process killed by a signal is reported rather
// than one that ended by itself just before.
void Supervisor::failed(u32 process, End how) {
  if (status_ && !(ending_ == Ending::noticed && how.by_signal && !first_.by_signal)) return;
  status_ = how.by_signal ? 128 + how.number : how.number;
  first_ = {how.by_signal, fmt::format("process {} (pid {}) ", process, members_[process].pid)};
  if (!how.by_signal) first_.said += fmt::format("ended with status {}", how.number);
  else if (passed_.contains(how.number)) first_.said.clear();  // the user sent that signal
  else
    first_.said += fmt::format("was killed by signal {} ({})", how.number, ::strsignal(how.number));
  if (ending_ != Ending::none) return;
  ending_ = Ending::noticed;
  next_step_ = Clock::now() + until_sure;
}

void Supervisor::announce() {
  if (!first_.said.empty()) output_.say(first_.said + (running_ > 0 ? "; ending the others" : ""));
  first_.said.clear();
}

// Others may have ended because these did not answer. SIGTERM does not end stopped processes.
void Supervisor::name_stopped() {
  for (u32 k = 0; k < members_.size(); ++k) {
    auto const [pid, runs] = members_[k];
    char const state = runs ? state_of(pid) : '\0';
    if (state != 'T' && state != 't') continue;
    output_.say(fmt::format(
        "process {} (pid {}) has not ended: {} (state {} in /proc/{}/stat)", k, pid,
        state == 'T' ? fmt::format("a signal has stopped it, `kill -CONT {}` lets it go on", pid)
                     : "a debugger holds it",
        state, pid));
  }
}

// -- signals and time

void Supervisor::on_signals() {
  while (auto const info = signals_.next()) {
    auto const number = static_cast<int>(info->ssi_signo);
    if (number == SIGCHLD) children_.collect(static_cast<pid_t>(info->ssi_pid));
    else on_signal(number);
  }
}

void Supervisor::on_signal(int number) {
  if (number == SIGTSTP) return stop_and_continue();
  if (number == SIGUSR1 || number == SIGUSR2) return children_.signal(number);
  if (running_ == 0) {  // only output is left, and its reader is slow
    if (!status_) status_ = 128 + number;
    return give_up();
  }
  auto const name = fmt::format("SIG{}", ::sigabbrev_np(number));
  if (passed_.insert(number).second) {
    output_.say(fmt::format("{} is passed on to {}; the same signal again kills them", name,
                            still_running()));
    children_.signal(number);
    return children_.signal(SIGCONT);  // one that is stopped would not take it
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
      output_.say(fmt::format("the job ran for the {} s of --timeout; ending {}", *options_.timeout,
                              running_ ? still_running() : "its output"));
    }
    if (running_ == 0) return give_up();
    if (ending_ == Ending::none) name_stopped();
    if (ending_ < Ending::terminated) terminate();
  }
  if (next_step_ && now >= *next_step_) on_next_step();
}

void Supervisor::on_next_step() {
  next_step_.reset();
  if (running_ == 0) {
    if (!children_.open()) return;
    output_.say("ended programs that the processes had started and left running");
    children_.signal(SIGKILL);
    children_.close();
  } else if (ending_ == Ending::noticed) {
    announce();
    name_stopped();
    ending_ = Ending::grace;
    next_step_ = Clock::now() + grace;
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
  if (output_.failure() !=
      EPIPE)  // no message for a closed pipe, such as | head: other programs print none
    output_.say(fmt::format("standard output can't be written: {}; ending the job",
                            std::strerror(output_.failure())));
  if (!status_) status_ = output_.failure() == EPIPE ? 128 + SIGPIPE : 1;
  if (ending_ < Ending::terminated && running_ > 0) terminate();
}

// Ctrl-Z and fg: the processes are in groups of their own, unknown to the shell.
void Supervisor::stop_and_continue() {
  children_.signal(SIGSTOP);
  ::raise(SIGSTOP);
  children_.signal(SIGCONT);
}

void Supervisor::terminate() {
  announce();
  ending_ = Ending::terminated;
  next_step_ = Clock::now() + until_killed;
  children_.signal(SIGTERM);
}

void Supervisor::kill() {
  announce();
  ending_ = Ending::killed;
  children_.signal(SIGKILL);
}

void Supervisor::give_up() {
  forgets_ = true;
  children_.signal(SIGKILL);
  children_.close();
  output_.discard();
}

std::string Supervisor::still_running() const {
  std::string text;
  u32 count = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].runs) continue;
    auto last = i;
    while (last + 1 < members_.size() && members_[last + 1].runs) ++last;
    text += fmt::format("{}{}", count > 0 ? ", " : "", i);
    if (last > i) text += fmt::format("{}{}", last > i + 1 ? "-" : ", ", last);
    count += static_cast<u32>(last - i + 1);
    i = last;
  }
  return (count == 1 ? "process " : "processes ") + text;
}

}  // namespace meshpost::launch
