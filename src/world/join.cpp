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

// A changed bit looks like a unauthenticated peer, or like another secret. But the same bit does
// not change on several calls.
constexpr u32 calls_to_believe = 3;

Error wrong_address(Job const& job, Error const& error) {
  return {Kind::bad_environment, operation,
          fmt::format("what listens at {} is no process of meshpost: {}", job.rendezvous,
                      error.cause()),
          "check MESHPOST_RENDEZVOUS"};
}

// The result of a call: we are in, or `cause` says why not.
struct Answer {
  bool let_in = false;
  std::string cause{};
  std::optional<Error> doubtful{};  // another call may show that this error is wrong
};

// Calls process 0 until it is let in.
class Entrance {
 public:
  explicit Entrance(Job const& job) : job_(job), deadline_(start_deadline(job)) {}

  std::unique_ptr<Line> enter() {
    for (;; std::this_thread::sleep_for(pause_between_tries)) {
      auto line = next_call();
      ++calls_;
      auto const until = std::min(deadline_, Clock::now() + timeout_with_a_call(job_));
      auto const answer = take_answer(*line, until);
      if (answer.let_in) return line;
      note(answer);
      if (Clock::now() >= deadline_) throw not_greeted();
    }
  }

 private:
  std::unique_ptr<Line> next_call() {
    try {
      auto [socket, secret] = call(job_, deadline_);
      return std::make_unique<Line>(std::move(socket), Tls(Tls::Context(secret), Tls::End::caller));
    } catch (Error const& error) {
      if (calls_ == 0) throw;
      throw Error(error.kind(), error.operation(),
                  fmt::format("{}; before, {}", error.cause(), last_call()), error.remedy());
    }
  }

  // \throws the refusal of process 0
  Answer take_answer(Line& line, Clock::time_point until) {
    std::optional<wire::Frame> frame;
    bool said_hello = false;
    try {
      auto const has_come = [&] { return (frame = line.next()) || line.is_proven(); };
      if (auto const cause = await(line, until, has_come); !cause.empty()) return {.cause = cause};
      line.send({.type = wire::Type::hello},
                greeting::pack({job_.process, job_.processes, greeting::version(), getpid(),
                                host_name(), job_.identity}));
      said_hello = true;
      // No second call while this one stands: process 0 may be slow, and then let both in.
      auto const cause = await(line, deadline_, [&] { return frame || (frame = line.next()); });
      if (!cause.empty()) return {.cause = cause};
    } catch (Error const& error) {
      // The other end proved itself, so it is process 0, and may have let us in. Another call would
      // use a number that is taken.
      bool const other_end_broke = error.cause().starts_with(Tls::other_end_says);
      if (said_hello && !other_end_broke)
        throw Error(Kind::peer_lost, operation,
                    fmt::format("process 0 is lost: its connection broke while it let this process "
                                "in: {}",
                                error.cause()),
                    error.remedy());
      if (said_hello) return {.cause = error.cause()};
      bool const garbage = error.kind() == Kind::bad_argument;
      return {.cause = error.cause(), .doubtful = garbage ? wrong_address(job_, error) : error};
    }
    if (frame->header.type == wire::Type::refusal) {
      auto const refusal = wire::unpack_error(frame->bytes);
      // The file may be of an earlier job. Its port may belong to another process by now.
      if (!by_file() || !refusal.cause().starts_with(other_job)) throw refusal;
      return {.cause = refusal.cause(), .doubtful = refusal};
    }
    if (frame->header.type != wire::Type::welcome)
      return {.cause = "its reply is neither a welcome nor a refusal"};
    line.trust();
    return {.let_in = true};
  }

  // Waits until `there` returns true. Returns why it did not; empty if it did.
  template <class There>
  static std::string await(Line& line, Clock::time_point until, There&& there) {
    for (bool stands = true;;) {
      if (there()) return {};
      if (!stands) return "it hung up";
      if (Clock::now() >= until) return "it did not answer";
      line.flush();
      pollfd polled{line.socket(), static_cast<short>(POLLIN | (line.has_output() ? POLLOUT : 0)),
                    0};
      poll(&polled, 1, milliseconds_until(until));
      stands = line.receive();
    }
  }

  void note(Answer const& answer) {
    alike_ = answer.cause == last_cause_ ? alike_ + 1 : 1;
    last_cause_ = answer.cause;
    bool const believed = by_file() ? Clock::now() >= deadline_ : alike_ >= calls_to_believe;
    if (answer.doubtful && believed) throw Error(*answer.doubtful);
  }

  std::string last_call() const {
    return calls_ == 1 ? fmt::format("a call failed: {}", last_cause_)
                       : fmt::format("{} calls failed, the last: {}", calls_, last_cause_);
  }

  Error not_greeted() const {
    return {Kind::deadline, operation,
            fmt::format("what listens at {} has not greeted within {:.3g} s; {}", job_.rendezvous,
                        seconds(job_.timeout), last_call()),
            "if another program has this port, choose another one (MESHPOST_RENDEZVOUS); else see "
            "the log of process 0"};
  }

  bool by_file() const { return job_.rendezvous.starts_with("file:"); }

  Job const& job_;
  Clock::time_point const deadline_;
  u32 calls_ = 0, alike_ = 0;  // alike: the last calls, which failed in the same way
  std::string last_cause_;
};

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

std::unique_ptr<Line> enter(Job const& job) { return Entrance(job).enter(); }

}  // namespace meshpost::join
