#include "support/job.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>

namespace meshpost::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr char const* role_variable = "MESHPOST_TEST_ROLE";
std::function<WorldOptions()> options_of_roles = [] { return WorldOptions{}; };

std::map<std::string, std::function<void()>>& roles() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}

// A listening socket and its address.
std::pair<int, std::string> listener() {
  int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket, 128) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no listening socket");
  return {socket, "127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
}

struct Hosts {
  std::string name;
  u32 count = 0;  // 0: all is here
};
Hosts hosts() {
  char const* const text = std::getenv(hosts_variable);
  if (!text) return {};
  std::string const all = text;
  auto const colon = all.find(':');
  return {all.substr(0, colon), static_cast<u32>(std::stoul(all.substr(colon + 1)))};
}
constexpr char const* meeting_of_hosts = "10.79.0.1:7100";  // no other process listens there

// Runs in a child before it becomes a process of the job.
void move_to(Hosts const& hosts, u32 process) {
  if (hosts.count == 0) return;
  auto const path = "/run/netns/" + hosts.name + "-" + std::to_string(process % hosts.count + 1);
  if (int const there = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      there < 0 || setns(there, CLONE_NEWNET) != 0)
    _exit(126);
}

std::string secret() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 64; ++i) text += "0123456789abcdef"[random() % 16];
  return text;
}

}  // namespace

Role::Role(std::string name, std::function<void()> body) {
  roles()[std::move(name)] = std::move(body);
}

void play(std::string const& role) { roles().at(role)(); }

WorldOptions world_options() { return options_of_roles(); }
void let_world_options_be(std::function<WorldOptions()> options) {
  options_of_roles = std::move(options);
}

void say(std::string const& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void require(bool holds, std::string const& what, std::source_location where) {
  if (holds) return;
  std::printf("%s:%u: %s\n", where.file_name(), where.line(), what.c_str());
  std::fflush(stdout);
  std::exit(1);
}

void print_error(std::function<void()> const& body) {
  try {
    body();
  } catch (std::exception const& error) {
    return say(std::string("error: ") + error.what());
  }
  require(false, "nothing was thrown");
}

std::string own_host() { return hosts().count == 0 ? "127.0.0.1" : "10.79.0.254"; }

Job::Job(std::string const& role, u32 processes, Variables const& all,
         std::function<Variables(u32)> const& own)
    : since_(Clock::now()) {
  if (std::getenv(
          role_variable)) {  // otherwise each process of a job would start jobs, without end
    std::fprintf(stderr, "this test program plays no roles: link support/job_main.cpp\n");
    std::_Exit(70);
  }
  auto const [socket, address] = listener();
  auto const places = hosts();
  Variables common{{"MESHPOST_PROCESSES", std::to_string(processes)},
                   {"MESHPOST_RENDEZVOUS", places.count == 0 ? address : meeting_of_hosts},
                   {"MESHPOST_SECRET", secret()},
                   {role_variable, role}};
  for (auto const& [name, value] : all) common[name] = value;
  for (u32 process = 0; process < processes; ++process) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_t const parent = getpid();
    pid_t const pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      dup2(ends[1], 1);
      dup2(ends[1], 2);
      for (auto const& [name, value] : common) setenv(name.c_str(), value.c_str(), 1);
      setenv("MESHPOST_PROCESS", std::to_string(process).c_str(), 1);
      move_to(places, process);
      if (process == 0 && places.count == 0) {
        fcntl(socket, F_SETFD, 0);
        setenv("MESHPOST_LISTENER", std::to_string(socket).c_str(), 1);
      }
      // The whole file again, with processes that act as if they shared no memory.
      if (char const* const nodes = std::getenv("MESHPOST_TEST_NODES"))
        setenv("MESHPOST_NODE", std::to_string(process % std::stoul(nodes)).c_str(), 0);
      if (own)
        for (auto const& [name, value] : own(process)) setenv(name.c_str(), value.c_str(), 1);
      char program[] = "/proc/self/exe";
      char* const arguments[] = {program, nullptr};
      execv(program, arguments);
      _exit(127);
    }
    close(ends[1]);
    children_.push_back({pid, ends[0], false, {}});
  }
  close(socket);
}

Job::~Job() {
  for (auto& child : children_) {
    if (!child.over) ::kill(child.pid, SIGKILL);
    if (!child.over) waitpid(child.pid, nullptr, 0);
    if (child.pipe >= 0) close(child.pipe);
  }
}

void Job::read(int milliseconds) {
  std::vector<pollfd> polled;
  for (auto const& child : children_) polled.push_back({child.pipe, POLLIN, 0});
  poll(polled.data(), polled.size(), milliseconds);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (polled[i].revents == 0) continue;
    char bytes[4096];
    auto const size = ::read(children_[i].pipe, bytes, sizeof bytes);
    if (size > 0) {
      children_[i].ended.out.append(bytes, static_cast<std::size_t>(size));
    } else {
      close(children_[i].pipe);
      children_[i].pipe = -1;
      reap(children_[i]);
    }
  }
}

void Job::reap(Child& child) {
  waitpid(child.pid, &child.ended.status, 0);
  child.over = true;
  child.ended.seconds = std::chrono::duration<double>(Clock::now() - since_).count();
}

std::string const& Job::wait_for(u32 process, std::string const& text) {
  auto const until = Clock::now() + std::chrono::seconds(sanitized ? 90 : 30);
  auto const& child = children_[process];
  while (child.ended.out.find(text) == std::string::npos) {
    if (child.over || Clock::now() > until) {
      ADD_FAILURE() << "process " << process << " did not say '" << text << "' but\n"
                    << child.ended.out;
      break;
    }
    read(100);
  }
  return child.ended.out;
}

void Job::kill(u32 process, int signal) {
  since_ = Clock::now();
  ::kill(children_[process].pid, signal);
}

std::vector<Ended> const& Job::wait(std::chrono::seconds limit) {
  auto const until = Clock::now() + limit;
  static thread_local std::vector<Ended> all;
  auto const going = [this] {
    return std::ranges::any_of(children_, [](auto const& child) { return !child.over; });
  };
  while (going() && Clock::now() < until) read(100);
  for (auto& child : children_) {
    if (child.over) continue;
    ADD_FAILURE() << "a process went on after " << limit.count() << " s; it had said\n"
                  << child.ended.out;
    ::kill(child.pid, SIGKILL);
    reap(child);
  }
  all.clear();
  for (auto const& child : children_) all.push_back(child.ended);
  return all;
}

void expect_well(std::vector<Ended> const& all) {
  for (std::size_t process = 0; process < all.size(); ++process)
    EXPECT_TRUE(all[process].well())
        << "process " << process << " ended with status " << all[process].status << "\n"
        << all[process].out;
}

void expect_in_order(std::string const& out, std::vector<std::string> const& pieces) {
  std::size_t at = 0;
  for (auto const& piece : pieces) {
    auto const found = out.find(piece, at);
    ASSERT_NE(found, out.npos) << "'" << piece << "' in\n" << out;
    at = found + piece.size();
  }
}

}  // namespace meshpost::test
