#include "world/rendezvous.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "meshpost/base/error.hpp"
#include "meshpost/base/held.hpp"
#include "world/open_files.hpp"

namespace meshpost {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto pause_between_calls = std::chrono::milliseconds(20);

[[noreturn]] void refuse(std::string const& address, std::string const& cause, char const* remedy) {
  throw Error(Kind::bad_environment, fmt::format("meet at {}", address), cause, remedy);
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(std::string const& address, bool to_listen) {
  auto const colon = address.rfind(':');
  auto host = address.substr(0, colon), port = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  int const error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0)
    refuse(address,
           fmt::format("the host '{}' can't be resolved: {}", host,
                       error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)),
           "set MESHPOST_RENDEZVOUS to an address of process 0's host that all others know");
  return {found, freeaddrinfo};
}

bool is_file(Job const& job) { return job.rendezvous.starts_with("file:"); }
std::string file_of(Job const& job) { return job.rendezvous.substr(5); }

// Removes files of jobs that were killed before all had come. Each file has a name of its own
// (meeting_file in job.cpp), so no later job would find it.
void remove_left_by_others(std::filesystem::path const& file) {
  auto const folder = file.has_parent_path() ? file.parent_path() : ".";
  remove_unheld(folder.c_str(), fmt::format("meshpost-{}-", geteuid()));
}

// If nobody listens at a port of this host, a call to it may get that port for itself, and be
// connected to itself.
bool is_own_echo(Descriptor const& socket) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here, other_size = sizeof there;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size);
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &other_size);
  return size == other_size && std::memcmp(&here, &there, size) == 0;
}

Secret secret_of(Job const& job) {
  if (auto const secret = Secret::from_hex(job.secret)) return *secret;
  refuse(job.rendezvous, "the job's secret is not 64 hexadecimal digits",
         "set MESHPOST_SECRET_FILE to a file with what `openssl rand -hex 32` prints");
}

// Returns nothing if it failed; then `error` is errno.
Descriptor connect_to(std::string const& address, Clock::time_point deadline, int& error) {
  auto const found = resolve(address, false);
  for (auto const* one = found.get(); one; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    error = errno;
    if (!socket) continue;
    error = connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      auto const left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd waiting{socket.get(), POLLOUT, 0};
      poll(&waiting, 1, static_cast<int>(std::clamp<long>(left, 1, 5000)));
      socklen_t size = sizeof error;
      if (waiting.revents == 0) error = ETIMEDOUT;
      else getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0 && is_own_echo(socket)) error = ECONNREFUSED;
    if (error == 0) return socket;
  }
  return {};
}

bool is_loopback(addrinfo const& one) {
  return one.ai_family == AF_INET &&
         ntohl(reinterpret_cast<sockaddr_in const*>(one.ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

}  // namespace

Descriptor listen_at(std::string const& address) {
  auto found = resolve(address, true);
  // Debian gives a host's own name an address that no other host reaches.
  auto const host = address.substr(0, address.rfind(':'));
  if (is_loopback(*found) && host != "localhost" && !host.starts_with("127."))
    found = resolve("0.0.0.0" + address.substr(host.size()), true);
  int const yes = 1;
  Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket && bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      listen(socket.get(), 128) == 0)
    return socket;
  int const error = errno;
  if (is_lack_of_files(error))
    throw lack_of_files(fmt::format("meet at {}", address), "process 0 can't listen there", error);
  refuse(address, fmt::format("process 0 can't listen there: {}", std::strerror(error)),
         error == EADDRINUSE ? "choose a port that is free, or end the job that has this one"
                             : "name an address of the host that process 0 runs on");
}

u32 port_of(Descriptor const& listener) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

bool answers(std::string const& address, std::chrono::milliseconds timeout) {
  int error = 0;
  return static_cast<bool>(connect_to(address, Clock::now() + timeout, error));
}

Meeting open_meeting(Job const& job) {
  if (!is_file(job)) {
    auto const secret = secret_of(job);
    int const inherited = job.listener;
    if (int listens = 0; inherited >= 0) {
      socklen_t size = sizeof listens;
      if (getsockopt(inherited, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
        refuse(job.rendezvous,
               fmt::format("MESHPOST_LISTENER names {}, which does not listen", inherited),
               "leave it to meshpost-run");
      fcntl(inherited, F_SETFD, FD_CLOEXEC);
      fcntl(inherited, F_SETFL, O_NONBLOCK);  // a caller may hang up before we answer
      return {Descriptor(inherited), secret, {}};
    }
    return {listen_at(job.rendezvous), secret, {}};
  }
  auto const path = file_of(job);
  unlink(path.c_str());  // of a job that ended badly
  remove_left_by_others(path);
  auto const secret = job.secret.empty() ? Secret(random_bytes()) : secret_of(job);
  Meeting meeting{listen_at("127.0.0.1:0"), secret, path};
  meeting.held = write_private_file(
      path, fmt::format("127.0.0.1:{} {}\n", port_of(meeting.listener), secret.hex()));
  return meeting;
}

Clock::time_point start_deadline(Job const& job) {
  return job.timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + job.timeout;
}

std::string where_to_meet(Job const& job) {
  return is_file(job) ? "; if it has another file, set MESHPOST_RENDEZVOUS=file:PATH, the same "
                        "for all"
                      : "";
}

Caller call(Job const& job, Clock::time_point deadline) {
  std::string why = "no call was made";
  for (;;) {
    std::string address = job.rendezvous;
    auto secret = is_file(job) ? std::nullopt : std::optional(secret_of(job));
    if (is_file(job)) {
      address.clear();
      why = "there is no such file";
      if (auto const text = find_private_file(file_of(job))) {
        auto const space = std::min(text->find(' '), text->size());
        address = text->substr(0, space);
        secret = Secret::from_hex(text->substr(std::min(space + 1, text->size()), 64));
        why = "the file holds no address and secret";
      }
    }
    if (secret && address.find(':') != std::string::npos) {
      int error = 0;
      if (auto socket = connect_to(address, deadline, error)) {
        int const yes = 1;
        setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return {std::move(socket), *secret};
      }
      why = std::strerror(error);
      if (is_lack_of_files(error))
        throw lack_of_files(fmt::format("meet at {}", job.rendezvous), "there is no socket", error,
                            job.processes);
    }
    if (Clock::now() >= deadline)
      throw Error(
          Kind::deadline, fmt::format("meet at {}", job.rendezvous),
          fmt::format("process 0 was not there within {:.3g} s: {}",
                      static_cast<double>(job.timeout.count()) * 1e-3, why),
          fmt::format(
              "check that process 0 was started, and see its log{}; raise MESHPOST_START_DEADLINE "
              "(seconds) if it starts late",
              where_to_meet(job)));
    std::this_thread::sleep_for(pause_between_calls);
  }
}

}  // namespace meshpost
