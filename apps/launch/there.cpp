#include "there.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <thread>

#include "surroundings.hpp"

namespace meshpost::launch {
namespace {

constexpr std::size_t most_noise = 65536;  // bytes of others before the agent's greeting
constexpr std::chrono::seconds to_end{3};  // for a command whose agent is let go

}  // namespace

There::There(std::vector<std::string> command, std::chrono::milliseconds silence, rlimit files,
             Calls calls)
    : command_(std::move(command)),
      child_(launch::start({command_, inherited_environment(), Input::pipe, -1, files})),
      link_(child_.output.get(), child_.input.get()),
      calls_(std::move(calls)),
      noise_({}) {
  link_.agree_on(silence);
}

// The agent ends its processes, which takes no time, and then itself.
There::~There() {
  let_go();
  auto const until = well_ + to_end;
  siginfo_t how{};
  while (!ended_ &&
         ::waitid(P_PID, static_cast<id_t>(child_.pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         how.si_pid == 0 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(-child_.pid, SIGKILL);
  while (::waitpid(-child_.pid, nullptr, 0) > 0 || errno == EINTR) continue;
}

void There::flush() {
  if (!child_.input) return;
  Poller poller;
  link_.watch_out(poller);
  poller.wait(Clock::now());
}

void There::watch(Poller& poller) {
  if (child_.errors) poller.watch(child_.errors.get(), POLLIN, [this] { read_errors(); });
  if (gone_) return;
  if (child_.input) link_.watch_out(poller);
  if (calls_.full()) link_.excuse();
  else if (child_.output) poller.watch(child_.output.get(), POLLIN, [this] { read_some(); });
}

void There::read_some() {
  if (gone_ || !child_.output) return;
  bool const more = link_.read_some();
  take();
  if (more) return;
  child_.output.close();
  let_go();  // it says no more; on_time() sees to it that it ends
}

void There::take() try {
  if (!greeted_) take_greeting();
  while (greeted_ && !gone_)
    if (auto const frame = link_.next()) calls_.said(*frame);
    else break;
} catch (Error const& error) {
  cut(error.what());
}

// Shells may print something of their own before.
void There::take_greeting() {
  while (auto const line = link_.line()) {
    if (*line == greeting()) {
      greeted_ = true;
      return calls_.greeted();
    }
    if (line->starts_with(greeting_begins))
      return cut(
          fmt::format("the launcher there is '{}', this one '{}'; install the same, or name "
                      "another one with --launcher",
                      *line, greeting()));
    calls_.printed(*line);
  }
  if (link_.received() > most_noise)
    cut("what answers there is no meshpost-run; see that shells print nothing when ssh starts "
        "them");
}

void There::read_errors() {
  std::array<char, 4096> bytes;
  auto const size = ::read(child_.errors.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::string lines;
  if (size > 0) {
    noise_.add({bytes.data(), static_cast<std::size_t>(size)}, lines);
  } else {
    noise_.end(lines);
    child_.errors.close();
  }
  for (std::size_t at = 0, end = 0; at < lines.size(); at = end + 1) {
    end = lines.find('\n', at);
    calls_.printed(lines.substr(at, end - at));
  }
}

// Not by the end of what it prints: a connection that ssh shares with later ones may outlive it.
void There::collect() {
  siginfo_t how{};
  if (ended_ ||
      ::waitid(P_PID, static_cast<id_t>(child_.pid), &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      how.si_pid == 0)
    return;
  ended_ = true;
  if (gone_) return;
  pollfd there{child_.output.get(), POLLIN, 0};
  while (!gone_ && child_.output && ::poll(&there, 1, 0) == 1 && link_.read_some()) take();
  while (child_.errors && ::poll(&(there = {child_.errors.get(), POLLIN, 0}), 1, 0) == 1)
    read_errors();
  say_gone(how_it_ended(how.si_status, how.si_code != CLD_EXITED));
}

std::string There::how_it_ended(int status, bool by_signal) const {
  auto const how = by_signal ? fmt::format("was killed by signal {}", status)
                             : fmt::format("ended with status {}", status);
  if (greeted_) return fmt::format("{} {}", command_.front(), how);
  auto const words = fmt::format("'{}' {}", fmt::join(command_, " "), how);
  if (!by_signal && (status == 127 || status == 126))
    return words +
           (status == 127 ? ": there is no such program; install it there"
                          : ": it can't be run there; install one that can") +
           ", or say with --launcher where it is";
  return words + " before meshpost-run answered there; see that this command works by hand";
}

Clock::time_point There::next() const {
  if (gone_) return Clock::now() + std::chrono::hours(1);
  return child_.input ? link_.next_sign() : Clock::now() + std::chrono::milliseconds(100);
}

void There::on_time() {
  if (gone_) return;
  if (link_.broken()) let_go();
  if (!child_.input) {  // how it ends will say more
    if (Clock::now() - well_ < to_end) return;
    return cut(fmt::format("{} has closed its output and did not end", command_.front()));
  }
  if (greeted_ && link_.lost())
    return cut(fmt::format("no sign of life for {} s; see that the host is up and can be reached",
                           static_cast<double>(link_.silence().count()) * 1e-3));
  link_.say_alive();
}

void There::let_go() {
  if (!child_.input) return;
  flush();
  child_.input.close();
  well_ = Clock::now();
}

void There::cut(std::string const& why) {
  ::kill(-child_.pid, SIGKILL);
  say_gone(why);
}

void There::say_gone(std::string const& why) {
  if (std::exchange(gone_, true)) return;
  child_.input.close();
  calls_.gone(why);
}

}  // namespace meshpost::launch
