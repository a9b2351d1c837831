#include "agent.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "rendezvous.hpp"
#include "surroundings.hpp"

namespace meshpost::launch {

int Agent::run() {
  files_ = raise_file_limit();
  keep_outer_listener_back();
  fmt::print("{}\n", greeting());
  std::fflush(stdout);
  Poller poller;
  while (!over_ && !link_.broken()) {
    poller.watch(signals_.fd(), POLLIN, [this] { on_signals(); });
    poller.watch(0, POLLIN, [this] { take(); });
    link_.watch_out(poller);
    here_.watch(poller);
    if (doors_) doors_->watch(poller);
    if (reach_) reach_->watch(poller);
    poller.wait(reach_ ? std::min(reach_->next(), link_.next_sign()) : link_.next_sign());
    if (reach_ && reach_->over()) {
      link_.send({Say::reached, 0, 0, pack_list(reach_->reached())});
      reach_.reset();
    }
    if (stopped_) link_.excuse();
    if (link_.lost()) break;
    link_.say_alive();
  }
  return 0;
}

void Agent::on_signals() {
  while (auto const info = signals_.next()) {
    if (info->ssi_signo == SIGCHLD) here_.collect(static_cast<pid_t>(info->ssi_pid));
    else if (info->ssi_signo != SIGTSTP) over_ = true;
  }
}

void Agent::take() {
  if (!link_.read_some()) over_ = true;
  while (auto const frame = link_.next())
    if (!over_) obey(*frame);
}

void Agent::obey(Frame const& frame) try {
  switch (frame.say) {
    case Say::listen: return listen(frame);
    case Say::reach: {
      auto const all = unpack_list(frame.text);
      if (!all.empty()) reach_.emplace(std::vector(all.begin() + 1, all.end()), all.front());
      return;
    }
    case Say::job: return take_orders(frame.text);
    case Say::start: return start(frame);
    case Say::signal:
      if (frame.number == SIGSTOP) stopped_ = true;
      if (frame.number == SIGCONT) stopped_ = false;
      return here_.signal(frame.number);
    case Say::input: return here_.give(frame.text);
    case Say::close: return here_.close();
    default: return;
  }
} catch (Error const& error) {
  fail(error.what(), error.kind() == Kind::bad_argument ? 2 : 1);
}

void Agent::listen(Frame const& frame) {
  auto const all = unpack_list(frame.text);
  if (all.size() != 2) return;
  doors_ = std::make_unique<Doors>(frame.number, all[1]);
  std::vector<std::string> answer{doors_->port(false), doors_->port(true)};
  auto const some = all[0].empty() ? std::vector<std::string>() : doors_->addresses(all[0]);
  answer.push_back(std::to_string(some.size()));
  for (auto const& list : {some, doors_->addresses({})})
    answer.insert(answer.end(), list.begin(), list.end());
  link_.send({Say::listens, 0, 0, pack_list(answer)});
}

void Agent::take_orders(std::string const& text) {
  orders_ = unpack_orders(text);
  if (doors_) listener_ = doors_->take(orders_.job.rendezvous);
  doors_.reset();
  enter(orders_.folder);
  link_.send({Say::ready, 0, 0, {}});
}

void Agent::start(Frame const& frame) {
  if (frame.process == 0 && !listener_) {  // all processes are on this host
    auto here = listen_here();
    listener_ = std::move(here.listener);
    orders_.job.rendezvous = here.address;
  }
  Process const process{frame.process, frame.process == 0 ? listener_.get() : -1};
  try {
    here_.start(frame.process,
                {orders_.command, child_environment(inherited_environment(), orders_.job, process),
                 frame.process == 0 ? Input::pipe : Input::nothing, process.listener, files_});
  } catch (NotStarted const& error) {
    link_.send({Say::not_started, frame.process, error.status(), error.what()});
  }
  if (frame.process == 0) listener_.close();
}

void Agent::fail(std::string const& why, int status) { link_.send({Say::failed, 0, status, why}); }

void Agent::started(u32 process, pid_t pid) { link_.send({Say::started, process, pid, {}}); }

void Agent::printed(u32 process, int stream, std::string_view bytes) {
  link_.send({Say::printed, process, stream, std::string(bytes)});
}

void Agent::printed_all(u32 process, int stream) {
  link_.send({Say::printed, process, stream, {}});
}

void Agent::ended(u32 process, End end) {
  link_.send({Say::ended, process, end.by_signal ? -end.number : end.number, {}});
}

void Agent::input_taken() { link_.send({Say::input_taken, 0, 0, {}}); }

void Agent::say(std::string const& line) { fmt::print(stderr, "{}\n", line); }

}  // namespace meshpost::launch
