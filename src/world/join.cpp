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

// Waits until `there` is something; not, if the connection ends before.
template <class There>
bool await(Line& line, Job const& job, Clock::time_point deadline, There&& there) {
  for (bool stands = true;;) {
    if (there()) return true;
    if (!stands) return false;
    if (Clock::now() >= deadline) throw not_greeted(job);
    line.flush();
    pollfd polled{line.socket(), static_cast<short>(POLLIN | (line.has_output() ? POLLOUT : 0)), 0};
    poll(&polled, 1, milliseconds_until(deadline));
    stands = line.receive();
  }
}

// Whether we were let in; not, if the connection ends before.
bool is_let_in(Line& line, Job const& job, Clock::time_point deadline) {
  std::optional<wire::Frame> answer;
  auto const has_come = [&] { return (answer = line.next()) || line.is_proven(); };
  try {
    if (!await(line, job, deadline, has_come)) return false;
    line.send({.type = wire::Type::hello},
              greeting::pack({job.process, job.processes, greeting::version(), getpid(),
                              host_name(), job.identity}));
    if (!await(line, job, deadline, [&] { return answer || (answer = line.next()); })) return false;
    if (answer->header.type == wire::Type::refusal) throw wire::unpack_error(answer->bytes);
  } catch (Error const& error) {
    if (error.kind() != Kind::bad_argument) throw;
    throw Error(Kind::bad_environment, operation,
                fmt::format("what listens at {} is no process of meshpost: {}", job.rendezvous,
                            error.cause()),
                "check MESHPOST_RENDEZVOUS");
  }
  if (answer->header.type != wire::Type::welcome) return false;
  line.trust();
  return true;
}

// Whether it may be a stranger who said this: process 0 says these only to who knows the secret.
bool may_be_strangers(Error const& error) {
  return error.kind() == Kind::deadline || error.cause() == Tls::other_secret ||
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
    auto line =
        std::make_unique<Line>(std::move(socket), Tls(Tls::Context(secret), Tls::End::caller));
    auto const until = may_change ? std::min(deadline, Clock::now() + greeting_patience) : deadline;
    try {
      if (is_let_in(*line, job, until)) return line;
    } catch (Error const& error) {
      if (!may_change || Clock::now() >= deadline || !may_be_strangers(error)) throw;
    }
    if (Clock::now() >= deadline) throw not_greeted(job);
    std::this_thread::sleep_for(pause_between_tries);
  }
}

}  // namespace meshpost::join
