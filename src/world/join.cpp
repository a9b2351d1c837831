#include "world/join.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "world/greeting.hpp"
#include "world/join_common.hpp"
#include "world/rendezvous.hpp"

namespace meshpost::join {
namespace {

constexpr auto pause_between_tries = std::chrono::milliseconds(20);

// It is silent, or hangs up each time.
Error not_greeted(Job const& job) {
  return {Kind::deadline, operation,
          fmt::format("what listens at {} has not greeted within {:.3g} s", job.rendezvous,
                      seconds(job.patience)),
          "if another program has this port, choose another one (MESHPOST_RENDEZVOUS); else see "
          "what became of process 0"};
}

// The next frame, waited for; nothing if the connection ends before.
std::optional<wire::Frame> await_frame(Line& line, Job const& job, Clock::time_point deadline) {
  for (bool stands = true;;) {
    if (auto frame = line.next()) return frame;
    if (!stands) return std::nullopt;
    if (Clock::now() >= deadline) throw not_greeted(job);
    pollfd polled{line.socket(), POLLIN, 0};
    poll(&polled, 1, milliseconds_until(deadline));
    stands = line.receive();
  }
}

// Whether we were let in; not, if the connection ends before.
bool is_let_in(Line& line, Job const& job, Secret const& secret, Clock::time_point deadline) {
  try {
    auto const first = await_frame(line, job, deadline);
    if (!first) return false;
    auto const theirs = greeting::read_challenge(first->bytes);
    greeting::Hello const mine{job.process, job.processes, greeting::version(), getpid(),
                               host_name(), job.identity,  random_bytes()};
    line.send({.type = wire::Type::hello}, greeting::hello(mine, theirs, secret));
    line.flush();
    auto const answer = await_frame(line, job, deadline);
    if (!answer) return false;
    if (answer->header.type == wire::Type::refusal) throw wire::unpack_error(answer->bytes);
    if (answer->header.type == wire::Type::welcome &&
        greeting::read_welcome(answer->bytes, mine.challenge, theirs, secret)) {
      line.trust(greeting::keys_of_other(mine.challenge, theirs, secret));
      return true;
    }
  } catch (Error const& error) {
    if (error.kind() != Kind::bad_argument) throw;
    throw Error(Kind::bad_environment, operation,
                fmt::format("what listens at {} is no process of meshpost: {}", job.rendezvous,
                            error.cause()),
                "check MESHPOST_RENDEZVOUS");
  }
  throw Error(Kind::bad_environment, operation,
              fmt::format("what listens at {} does not know the secret", job.rendezvous),
              "check MESHPOST_RENDEZVOUS");
}

// Whether it may be a stranger who said this: process 0 says these only to who knows the secret.
bool may_be_strangers(Error const& error) {
  return error.kind() == Kind::deadline || error.cause() == other_secret ||
         error.cause().starts_with(other_job) || error.cause().starts_with("what listens at");
}

}  // namespace

std::string host_name() {
  char name[65] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::unique_ptr<Line> enter(Job const& job) {
  auto const deadline = start_deadline(job);
  // A file may be left from a job before, and its port have another owner by now.
  bool const may_change = job.rendezvous.starts_with("file:");
  for (;;) {
    auto [socket, secret] = call(job, deadline);
    auto line = std::make_unique<Line>(std::move(socket), wire::most_before_greeting);
    auto const until = may_change ? std::min(deadline, Clock::now() + greeting_patience) : deadline;
    try {
      if (is_let_in(*line, job, secret, until)) return line;
    } catch (Error const& error) {
      if (!may_change || Clock::now() >= deadline || !may_be_strangers(error)) throw;
    }
    if (Clock::now() >= deadline) throw not_greeted(job);
    std::this_thread::sleep_for(pause_between_tries);
  }
}

}  // namespace meshpost::join
