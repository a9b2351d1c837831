#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "support/errors.hpp"
#include "world/greeting.hpp"
#include "world/join.hpp"
#include "world/processes.hpp"

// A job whose processes are played by threads of this one, and clients that misbehave.

namespace meshpost::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto generous = 30s;  // for what takes milliseconds

/// Whether `condition` came true, given more time than it can need.
template <class Condition>
bool comes_true(Condition&& condition) {
  for (auto const until = Clock::now() + generous; Clock::now() < until;
       std::this_thread::sleep_for(2ms))
    if (condition()) return true;
  return condition();
}

/// A socket on a port of this host that nobody else has.
struct Port {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  u32 number = 0;
  explicit Port(bool listens = true) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket, plain, size), 0);
    if (listens) {
      EXPECT_EQ(listen(socket, 256), 0);
    }
    EXPECT_EQ(getsockname(socket, plain, &size), 0);
    number = ntohs(address.sin_port);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(number); }
};

/// The processes of a job on a free port; number 0 owns the socket.
inline std::vector<Job> make_jobs(u32 processes) {
  Port const port;
  Job job;
  job.processes = processes;
  job.launcher = "test";
  job.rendezvous = port.address();
  job.secret = Secret(meshpost::random_bytes()).hex();
  job.patience = generous;
  job.silence = generous;
  std::vector<Job> jobs(processes, job);
  for (u32 process = 0; process < processes; ++process) jobs[process].process = process;
  jobs[0].listener = port.socket;
  return jobs;
}

/// Process 1 of two, without the other.
inline Job make_caller(std::string const& rendezvous) {
  auto jobs = make_jobs(2);
  close(jobs[0].listener);
  jobs[1].rendezvous = rendezvous;
  return jobs[1];
}

/// Joins and works as each of these at once. What they threw, by index.
inline std::vector<std::optional<Error>> play(std::vector<Job> const& jobs,
                                              std::function<void(Processes&)> const& work) {
  std::vector<std::optional<Error>> errors(jobs.size());
  std::vector<std::thread> threads;
  for (u32 i = 0; i < jobs.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        Processes processes(jobs[i]);
        work(processes);
      } catch (Error const& error) {
        errors[i] = error;
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

inline void expect_none(std::vector<std::optional<Error>> const& errors) {
  for (u32 i = 0; i < errors.size(); ++i)
    if (errors[i]) ADD_FAILURE() << "process " << i << ": " << errors[i]->what();
}

/// A connection to `address`.
inline Descriptor connect_to(std::string const& address) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port =
      htons(static_cast<in_port_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  return socket;
}

/// The next frame of this type; nothing if the connection ends before.
inline std::optional<wire::Frame> await(Line& line, wire::Type type) {
  auto const until = Clock::now() + generous;
  for (bool stands = true; Clock::now() < until;) {
    while (auto frame = line.next())
      if (frame->header.type == type) return frame;
    if (!stands) return std::nullopt;
    pollfd polled{line.socket(), POLLIN, 0};
    poll(&polled, 1, 100);
    stands = line.receive();
  }
  ADD_FAILURE() << "no such frame came";
  return std::nullopt;
}

inline void send_now(Line& line, wire::Header const& header, std::string_view bytes = {}) {
  line.send(header, bytes);
  line.flush();
}

/// A connection to process 0 that is proven, and has said nothing yet.
inline std::unique_ptr<Line> knock(Job const& job) {
  Tls::Context const context(*Secret::from_hex(job.secret));
  auto line = std::make_unique<Line>(connect_to(job.rendezvous), Tls(context, Tls::End::caller));
  line->flush();
  EXPECT_TRUE(comes_true([&] { return line->receive() && line->is_proven(); }));
  return line;
}

/// What somebody says first who knows this secret.
inline std::string first_words(Secret const& secret) {
  std::string words;
  Tls(Tls::Context(secret), Tls::End::caller).begin(words);
  return words;
}
/// What process 0 says to one who knows another secret: it needs none itself.
inline std::string const denial("\x15\x03\x03\x00\x02\x02\x2f", 7);

/// Joins with all others, and does and says nothing from then on.
inline std::unique_ptr<Line> join_by_hand(Job const& job) {
  auto line = join::enter(job);
  send_now(*line, {.type = wire::Type::bring, .channel = 0, .sequence = 1},
           wire::Packer()
               .text("join the job")
               .text("made by hand")
               .value(Waiters::impatient)
               .value(u32{0})
               .take());
  EXPECT_TRUE(await(*line, wire::Type::all));
  return line;
}

/// What joining as this process, and leaving, will have thrown.
inline std::future<std::optional<Error>> joining(Job const& job) {
  return std::async(std::launch::async, [job] { return play({job}, [](Processes&) {}).front(); });
}
inline Error error_of_joining(Job const& job) {
  return error_of([&] { Processes const processes(job); });
}

/// Says the same to everyone who calls, until the end.
class Stranger {
 public:
  explicit Stranger(std::string words) : words_(std::move(words)) {}
  ~Stranger() {
    shutdown(port_.socket, SHUT_RDWR);
    thread_.join();
    close(port_.socket);
  }
  Stranger(Stranger const&) = delete;
  Stranger& operator=(Stranger const&) = delete;
  std::string address() const { return port_.address(); }
  u32 calls() const { return calls_; }

 private:
  void answer() {
    std::vector<Descriptor> all;
    for (;;) {
      Descriptor call(accept4(port_.socket, nullptr, nullptr, SOCK_CLOEXEC));
      if (!call) return;
      EXPECT_GE(send(call.get(), words_.data(), words_.size(), MSG_NOSIGNAL), 0);
      all.push_back(std::move(call));
      ++calls_;
    }
  }
  std::string const words_;
  std::atomic<u32> calls_ = 0;
  Port port_;
  std::thread thread_{[this] { answer(); }};
};

}  // namespace meshpost::test
