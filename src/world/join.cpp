#include "world/join.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <thread>
#include <vector>

#include "world/greeting.hpp"
#include "world/rendezvous.hpp"

namespace meshpost::join {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto greeting_patience = std::chrono::seconds(5);  // with one stranger
constexpr std::size_t most_strangers = 64;                   // at a time
constexpr auto check_every = std::chrono::milliseconds(100);
constexpr auto pause_between_tries = std::chrono::milliseconds(20);
constexpr char const* operation = "join the job";
constexpr char const* other_secret = "the secret is another one than process 0's";

int milliseconds_until(Clock::time_point when) {
  auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now());
  return static_cast<int>(std::clamp<long>(left.count() + 1, 0, 60'000));
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) * 1e-3; }

// A connection that has not said who it is, or not proven it.
struct Stranger {
  std::unique_ptr<Line> line;
  Digest challenge;
  Clock::time_point until;
};

class Door {
 public:
  Door(Job const& job, Welcome welcome)
      : job_(job),
        welcome_(std::move(welcome)),
        meeting_(open_meeting(job)),
        here_(job.processes),
        missing_(job.processes - 1) {
    here_[0] = "process 0 itself";
  }
  ~Door() {
    if (!meeting_.file.empty()) unlink(meeting_.file.c_str());
  }
  Door(Door const&) = delete;
  Door& operator=(Door const&) = delete;

  void admit_all(std::function<void()> const& check) {
    auto const deadline = start_deadline(job_);
    while (missing_ > 0) {
      check();
      if (Clock::now() >= deadline) give_up();
      auto wake = std::min(deadline, Clock::now() + check_every);
      std::vector<pollfd> polled{{meeting_.listener.get(), POLLIN, 0}};
      for (auto const& stranger : strangers_) {
        polled.push_back({stranger.line->socket(), POLLIN, 0});
        wake = std::min(wake, stranger.until);
      }
      poll(polled.data(), polled.size(), milliseconds_until(wake));
      strangers_.remove_if([this](Stranger& one) { return is_done_with(one); });
      if (polled.front().revents != 0) open();
    }
  }

 private:
  void open() {
    Descriptor socket(
        accept4(meeting_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    int const yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (strangers_.size() == most_strangers) strangers_.pop_front();
    auto line = std::make_unique<Line>(std::move(socket), wire::most_before_greeting);
    auto const challenge = random_bytes();
    line->send({.type = wire::Type::hello}, greeting::challenge(challenge));
    if (line->flush())
      strangers_.push_back({std::move(line), challenge, Clock::now() + greeting_patience});
  }

  // Whether it was let in, refused or given up.
  bool is_done_with(Stranger& stranger) {
    try {
      bool const stands = stranger.line->receive();
      auto const frame = stranger.line->next();
      if (!frame) return !stands || Clock::now() >= stranger.until;
      if (frame->header.type != wire::Type::hello) return true;
      greet(stranger, frame->bytes);
    } catch (Error const&) {
      return true;  // garbage: nothing to say to it
    }
    return true;
  }

  void greet(Stranger& stranger, std::string const& bytes) {
    auto const hello = greeting::read_hello(bytes, stranger.challenge, meeting_.secret);
    if (auto const refusal = objection(hello)) {
      stranger.line->send({.type = wire::Type::refusal}, wire::pack(*refusal));
      stranger.line->flush();
      return;
    }
    stranger.line->send({.type = wire::Type::welcome},
                        greeting::welcome(hello->challenge, stranger.challenge, meeting_.secret));
    if (!stranger.line->flush()) return;
    stranger.line->trust(
        greeting::keys_of_process_0(stranger.challenge, hello->challenge, meeting_.secret));
    here_[hello->process] = fmt::format("process {} of {}", hello->pid, hello->host);
    --missing_;
    welcome_(hello->process, std::move(stranger.line));
  }

  std::optional<Error> objection(std::optional<greeting::Hello> const& hello) const {
    if (!hello)
      return Error(Kind::bad_environment, operation, other_secret,
                   "give all processes the same MESHPOST_SECRET or MESHPOST_SECRET_FILE");
    if (hello->version != greeting::version())
      return Error(Kind::version_mismatch, operation,
                   fmt::format("process {} has version {:#x} of the library's protocol, process 0 "
                               "has {:#x}",
                               hello->process, hello->version, greeting::version()),
                   "build all programs of a job with one version of the library");
    if (hello->processes != job_.processes || hello->process >= job_.processes)
      return Error(Kind::bad_environment, operation,
                   fmt::format("process {} believes that it is one of {}, process 0 counts {}",
                               hello->process, hello->processes, job_.processes),
                   "give all processes the same MESHPOST_PROCESSES");
    if (!here_[hello->process].empty())
      return Error(Kind::bad_environment, operation,
                   fmt::format("number {} is taken by {}", hello->process, here_[hello->process]),
                   "give each process a number (MESHPOST_PROCESS) of its own");
    return std::nullopt;
  }

  [[noreturn]] void give_up() const {
    std::vector<u32> missing;
    for (u32 process = 0; process < here_.size(); ++process)
      if (here_[process].empty()) missing.push_back(process);
    throw Error(Kind::deadline, operation,
                fmt::format("{} of {} processes came within {:.3g} s; missing: {}",
                            here_.size() - missing.size(), here_.size(), seconds(job_.patience),
                            fmt::join(missing, ", ")),
                "see what became of them; raise MESHPOST_START_DEADLINE (seconds) if they start "
                "late");
  }

  Job const& job_;
  Welcome welcome_;
  Meeting meeting_;
  std::list<Stranger> strangers_;
  std::vector<std::string> here_;  // who has which number; empty: nobody yet
  u32 missing_;
};

// The next frame, waited for; nothing if the connection ends before.
std::optional<wire::Frame> await_frame(Line& line, Clock::time_point deadline) {
  for (bool stands = true;;) {
    if (auto frame = line.next()) return frame;
    if (!stands) return std::nullopt;
    if (Clock::now() >= deadline)
      throw Error(Kind::deadline, operation, "process 0 does not greet",
                  "see what became of process 0");
    pollfd polled{line.socket(), POLLIN, 0};
    poll(&polled, 1, milliseconds_until(deadline));
    stands = line.receive();
  }
}

// Whether we were let in; not, if the connection ends before.
bool is_let_in(Line& line, Job const& job, Secret const& secret, Clock::time_point deadline) {
  try {
    auto const first = await_frame(line, deadline);
    if (!first) return false;
    auto const theirs = greeting::read_challenge(first->bytes);
    greeting::Hello const mine{job.process, job.processes, greeting::version(),
                               getpid(),    host_name(),   random_bytes()};
    line.send({.type = wire::Type::hello}, greeting::hello(mine, theirs, secret));
    line.flush();
    auto const answer = await_frame(line, deadline);
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
         error.cause().starts_with("what listens at");
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

void admit_all(Job const& job, Welcome welcome, std::function<void()> const& check) {
  Door(job, std::move(welcome)).admit_all(check);
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
    std::this_thread::sleep_for(pause_between_tries);
  }
}

}  // namespace meshpost::join
