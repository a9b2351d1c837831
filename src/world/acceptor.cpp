// Process 0's side of a start: it decides which processes join.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <vector>

#include "world/greeting.hpp"
#include "world/join.hpp"
#include "world/join_common.hpp"
#include "world/open_files.hpp"
#include "world/rendezvous.hpp"
#include "world/tls.hpp"

namespace meshpost::join {
namespace {

constexpr std::size_t most_unauthenticated = 64;  // at a time
constexpr auto check_every = std::chrono::milliseconds(100);
constexpr auto turning_away = std::chrono::seconds(1);  // callers that come late
constexpr char const* one_address_a_job =
    "give each job, and each of its steps, an address (MESHPOST_RENDEZVOUS) of its own";

// A connection that has not yet proven that it is of the job, or has not said who it is.
struct UnauthenticatedPeer {
  std::unique_ptr<Line> line;
  Clock::time_point until;
};

// Where somebody calls from. Not taken from its messages: they may lie.
std::string caller(Line const& line) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(line.socket(), plain, &size) != 0 ||
      getnameinfo(plain, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "a caller";
  return fmt::format("a caller from {} (port {})", host, port);
}

class Acceptor {
 public:
  Acceptor(Job const& job, Host const& host)
      : job_(job),
        host_(host),
        meeting_(open_meeting(job)),
        tls_(meeting_.secret),
        here_(job.processes),
        missing_(job.processes - 1) {
    here_[0] = "process 0 itself";
  }
  ~Acceptor() {
    if (!meeting_.file.empty()) unlink(meeting_.file.c_str());
  }
  Acceptor(Acceptor const&) = delete;
  Acceptor& operator=(Acceptor const&) = delete;

  void admit_all() {
    auto const deadline = start_deadline(job_);
    try {
      while (missing_ > 0) {
        host_.check();
        if (Clock::now() >= deadline) give_up();
        listen_until(deadline);
        if (over_) throw Error(*over_);
      }
    } catch (Error const& error) {
      host_.dismiss(error);
      // Otherwise the others would call until their deadline, and would not learn the reason.
      over_ = error;
      auto const until = std::min(deadline, Clock::now() + turning_away);
      while (missing_ > 0 && Clock::now() < until) listen_until(until);
      throw;
    }
  }

 private:
  void listen_until(Clock::time_point deadline) {
    auto const now = Clock::now();
    auto wake = std::min(deadline, now + check_every);
    int const listener = now < closed_until_ ? -1 : meeting_.listener.get();
    std::vector<pollfd> polled{{listener, POLLIN, 0}};
    for (auto const& peer : unauthenticated_) {
      polled.push_back({peer.line->socket(), POLLIN, 0});
      wake = std::min(wake, peer.until);
    }
    poll(polled.data(), polled.size(), milliseconds_until(wake));
    unauthenticated_.remove_if([this](UnauthenticatedPeer& one) { return is_done_with(one); });
    if (polled.front().revents != 0) open();
  }

  void open() {
    Descriptor socket(
        accept4(meeting_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (is_lack_of_files(errno)) make_room(errno);
      return;
    }
    int const yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (unauthenticated_.size() == most_unauthenticated) unauthenticated_.pop_front();
    auto line = std::make_unique<Line>(std::move(socket), Tls(tls_, Tls::End::acceptor));
    unauthenticated_.push_back({std::move(line), Clock::now() + timeout_with_a_call(job_)});
  }

  // Unauthenticated peers must not keep out the real ones. So the first of them has to greet at
  // once, or leave.
  void make_room(int error) {
    if (unauthenticated_.empty() && !over_)
      throw lack_of_files(operation,
                          fmt::format("{} of {} processes are here, and process 0 can't take in "
                                      "another one",
                                      job_.processes - missing_, job_.processes),
                          error, job_.processes);
    closed_until_ = Clock::now() + check_every;
    if (!unauthenticated_.empty())
      unauthenticated_.front().until = std::min(unauthenticated_.front().until, closed_until_);
  }

  // True if the unauthenticated peer was let in, refused or given up.
  bool is_done_with(UnauthenticatedPeer& peer) {
    greeting::Hello hello;
    try {
      bool const stands = peer.line->receive();
      peer.line->flush();
      auto const frame = peer.line->next();
      if (!frame && stands && Clock::now() < peer.until) return false;
      // A process whose connection broke after its hello calls again. Its number must be free then.
      if (!frame || !stands || frame->header.type != wire::Type::hello) {
        note_failed(*peer.line, stands ? "it did not say who it is" : "it hung up");
        return true;
      }
      hello = greeting::unpack(frame->bytes);
    } catch (Error const& error) {  // TLS has told the caller, or tried to
      if (error.cause() == Tls::other_secret) {
        ++with_other_secret_;
        last_refused_ = caller(*peer.line);
      } else {
        note_failed(*peer.line, error.cause());
      }
      return true;
    }
    greet(peer, hello);
    return true;
  }

  // The caller may be one of the missing processes.
  void note_failed(Line const& line, std::string const& cause) {
    ++failed_calls_;
    last_failed_ = fmt::format("{}: {}", caller(line), cause);
  }

  void greet(UnauthenticatedPeer& peer, greeting::Hello const& hello) {
    if (is_of_other_job(hello)) {
      other_job_ = hello.job;
      return refuse(peer, {Kind::bad_environment, operation,
                           fmt::format("{}: '{}'; this process is of '{}'", other_job,
                                       job_.identity, hello.job),
                           one_address_a_job});
    }
    // The caller knows the secret. So if it does not fit, there will be no job.
    if (!over_) over_ = objection(hello);
    if (over_) {
      if (hello.process < here_.size() && here_[hello.process].empty()) mark_answered(hello);
      return refuse(peer, *over_);
    }
    peer.line->send({.type = wire::Type::welcome});
    if (!peer.line->flush()) return;
    peer.line->trust();
    mark_answered(hello);
    host_.welcome(hello.process, std::move(peer.line));
  }

  bool is_of_other_job(greeting::Hello const& hello) const {
    return hello.version == greeting::version() && !hello.job.empty() && !job_.identity.empty() &&
           hello.job != job_.identity;
  }

  static void refuse(UnauthenticatedPeer& peer, Error const& why) {
    peer.line->send({.type = wire::Type::refusal}, wire::pack(why));
    peer.line->flush();
  }

  // The process was let in, or was told why not.
  void mark_answered(greeting::Hello const& hello) {
    here_[hello.process] = fmt::format("process {} of {}", hello.pid, hello.host);
    --missing_;
  }

  std::optional<Error> objection(greeting::Hello const& hello) const {
    if (hello.version != greeting::version())
      return Error(Kind::version_mismatch, operation,
                   fmt::format("process {} has version {:#x} of the library's protocol, process 0 "
                               "has {:#x}",
                               hello.process, hello.version, greeting::version()),
                   "build all programs of a job with one version of the library");
    if (hello.processes != job_.processes || hello.process >= job_.processes)
      return Error(Kind::bad_environment, operation,
                   fmt::format("process {} believes that it is one of {}, process 0 counts {}",
                               hello.process, hello.processes, job_.processes),
                   "give all processes the same MESHPOST_PROCESSES, and each job an address "
                   "(MESHPOST_RENDEZVOUS) of its own");
    if (!here_[hello.process].empty())
      return Error(
          Kind::bad_environment, operation,
          fmt::format("number {} is taken by {}; process {} of {} says that it is {}, too",
                      hello.process, here_[hello.process], hello.pid, hello.host, hello.process),
          "give each process a number (MESHPOST_PROCESS) of its own");
    return std::nullopt;
  }

  [[noreturn]] void give_up() const {
    std::vector<std::string> missing;
    for (u32 process = 0; process < here_.size(); ++process)
      if (here_[process].empty()) missing.push_back(fmt::format("process {}", process));
    auto cause = fmt::format("{} of {} processes came within {:.3g} s; missing: {}",
                             here_.size() - missing.size(), here_.size(), seconds(job_.timeout),
                             fmt::join(missing, ", "));
    if (with_other_secret_ != 0)
      cause += fmt::format("; refused {} calls with another secret, the last of {}",
                           with_other_secret_, last_refused_);
    if (failed_calls_ != 0)
      cause += fmt::format("; {} calls failed before it was known who called, the last of {}",
                           failed_calls_, last_failed_);
    if (!other_job_.empty())
      cause += fmt::format("; refused processes of another job, '{}', as this is '{}'", other_job_,
                           job_.identity);
    throw Error(Kind::deadline, operation, cause,
                fmt::format("check that they were started, and see their logs{}{}; raise "
                            "MESHPOST_START_DEADLINE (seconds) "
                            "if they start late",
                            with_other_secret_ == 0 ? "" : fmt::format("; {}", Tls::same_secret),
                            where_to_meet(job_)));
  }

  Job const& job_;
  Host const& host_;
  Meeting meeting_;
  Tls::Context tls_;
  std::list<UnauthenticatedPeer> unauthenticated_;
  std::vector<std::string> here_;  // who has which number; empty: nobody yet
  u32 missing_;
  u64 with_other_secret_ = 0;
  std::string last_refused_;
  u64 failed_calls_ = 0;
  std::string last_failed_;
  std::string other_job_;             // a process of it has called; empty: none
  Clock::time_point closed_until_{};  // set when no further file could be opened
  std::optional<Error> over_;         // why there will be no job
};

}  // namespace

void admit_all(Job const& job, Host const& host) { Acceptor(job, host).admit_all(); }

}  // namespace meshpost::join
