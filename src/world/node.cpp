#include "world/node.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "world/groups.hpp"
#include "world/join.hpp"
#include "world/open_files.hpp"
#include "world/secret.hpp"
#include "world/wire.hpp"

// Sockets are abstract ones. They leave nothing behind, and processes in different network
// namespaces don't find each other's. Their names are random, and both ends check that the other is
// the same user's. After that the processes try whether they can share memory.

namespace meshpost {
namespace {

constexpr char const* operation = "find out who shares memory";

struct SocketName {
  std::string boot, host, node, name;
};

std::string pack(SocketName const& name) {
  return wire::Packer().text(name.boot).text(name.host).text(name.node).text(name.name).take();
}
SocketName unpack_name(std::string_view bytes) {
  wire::Unpacker unpacker(bytes);
  SocketName name;
  for (auto* const text : {&name.boot, &name.host, &name.node, &name.name}) *text = unpacker.text();
  return name;
}

std::pair<sockaddr_un, socklen_t> abstract_address(std::string const& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto const text = "meshpost-" + name;  // behind a zero
  std::copy(text.begin(), text.end(), address.sun_path + 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())};
}

bool same_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

void set_timeout(int socket, std::chrono::seconds timeout) {
  timeval const limit{timeout.count(), 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::vector<bool> unpack_flags(std::string const& bytes) {
  std::vector<bool> flags;
  for (char const c : bytes) flags.push_back(c == '1');
  return flags;
}
std::string pack_flags(std::vector<Descriptor> const& sockets) {
  std::string flags;
  for (auto const& socket : sockets) flags += socket ? '1' : '0';
  return flags;
}

}  // namespace

Node::Node(Processes& processes, u32 channel)
    : processes_(processes),
      channel_(channel),
      sockets_(processes.count()),
      why_not_(processes.count()) {
  auto const name = Secret(random_bytes()).hex();
  Descriptor listener;
  auto const names = exchange_after(channel, [&] {
    listener = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto const [address, size] = abstract_address(name);
    if (!listener || bind(listener.get(), reinterpret_cast<sockaddr const*>(&address), size) != 0 ||
        listen(listener.get(), static_cast<int>(processes_.count())) != 0)
      throw no_files("there is no Unix socket", errno);
    return pack(SocketName{join::boot_id(), join::host_name(), processes_.job().node, name});
  });
  auto const reached = exchange_after(channel, [&] {
    call_lower(names);
    return pack_flags(sockets_);
  });
  std::vector<bool> coming(processes.count());
  for (u32 process = processes.number() + 1; process < processes.count(); ++process)
    coming[process] = unpack_flags(reached[process])[processes.number()];
  exchange_after(channel, [&] {
    answer_higher(listener, coming);
    return std::string();
  });
  test_memory(channel);
}

std::vector<std::string> Node::exchange_after(u32 channel,
                                              std::function<std::string()> const& step) {
  std::string mine, failure;
  try {
    mine = step();
  } catch (Error const& error) {
    failure = wire::pack(error);
  }
  auto all =
      processes_.exchange(channel, operation, wire::Packer().text(failure).text(mine).take());
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    if (auto const failed = unpacker.text(); !failed.empty()) {
      auto const error = wire::unpack_error(failed);
      throw Error(error.kind(), error.operation(),
                  fmt::format("in {}: {}", processes_.name(process), error.cause()),
                  error.remedy());
    }
    all[process] = unpacker.text();
  }
  return all;
}

Error Node::no_files(std::string const& cause, int error) const {
  return lack_of_files(operation, cause, error, processes_.count());
}

void Node::call_lower(std::vector<std::string> const& names) {
  auto const own = unpack_name(names[processes_.number()]);
  for (u32 process = 0; process < processes_.count(); ++process) {
    auto const other = unpack_name(names[process]);
    // A container with devices of its own has a host name of its own.
    hosts_.push_back(other.host + ' ' + other.boot);
    if (!own.boot.empty() && other.boot == own.boot && other.node == own.node)
      expected_.push_back(process);
    if (other.node != own.node) {
      why_not_[process] =
          fmt::format("MESHPOST_NODE is '{}' there and '{}' here", other.node, own.node);
    } else if (process < processes_.number()) {
      Descriptor line(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      auto const [address, size] = abstract_address(other.name);
      if (!line && is_lack_of_files(errno)) throw no_files("there is no Unix socket", errno);
      if (!line || connect(line.get(), reinterpret_cast<sockaddr const*>(&address), size) != 0) {
        why_not_[process] = fmt::format(
            "its Unix socket is out of reach ({}): another host, container or network namespace",
            std::strerror(errno));
      } else if (!same_user(line.get())) {
        why_not_[process] = "it is another user's";
      } else {
        u32 const number = processes_.number();
        set_timeout(line.get(), timeout);
        if (send(line.get(), &number, sizeof number, MSG_NOSIGNAL) == sizeof number)
          sockets_[process] = std::move(line);
      }
    }
  }
}

void Node::answer_higher(Descriptor const& listener, std::vector<bool> const& coming) {
  set_timeout(listener.get(), timeout);  // accept() obeys it too
  for (auto left = std::ranges::count(coming, true); left > 0;) {
    Descriptor line(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!line && errno == EINTR) continue;
    if (!line && is_lack_of_files(errno)) throw no_files("a process can't be answered", errno);
    if (!line)
      throw Error(Kind::deadline, operation, "a process that connected is gone",
                  "see the messages of the others");
    set_timeout(line.get(), timeout);
    u32 number = 0;
    if (!same_user(line.get()) ||
        recv(line.get(), &number, sizeof number, MSG_WAITALL) != sizeof number ||
        number >= coming.size() || !coming[number] || sockets_[number])
      continue;  // an unauthenticated peer
    sockets_[number] = std::move(line);
    --left;
  }
}

// If a process can map a page of mine and read what I wrote there, it shares memory with me.
void Node::test_memory(u32 channel) {
  u32 const me = processes_.number(), all = processes_.count();
  for (u32 process = 0; process < all; ++process)
    if (process == me || sockets_[process]) members_.push_back(process);
  std::vector<Descriptor> mine;
  auto const words = exchange_after(channel, [&] {
    auto const word = random_bytes();
    auto const& page = mine.emplace_back(memfd_create("meshpost-test", MFD_CLOEXEC));
    if (!page || write(page.get(), word.data(), word.size()) != static_cast<ssize_t>(word.size()))
      throw no_files("there is no memory file", errno);
    return std::string(word.data(), word.size());
  });
  auto const matrix = exchange_after(channel, [&] {
    std::string seen(all, '0');
    seen[me] = '1';
    share(mine, [&](u32 process, u32, int file) {
      auto const& word = words[process];
      void* const there = mmap(nullptr, word.size(), PROT_READ, MAP_SHARED, file, 0);
      bool const right = there != MAP_FAILED && std::memcmp(there, word.data(), word.size()) == 0;
      if (there != MAP_FAILED) munmap(there, word.size());
      if (right) seen[process] = '1';
      else why_not_[process] = fmt::format("its memory can't be mapped: {}", std::strerror(errno));
    });
    return seen;
  });
  auto const groups =
      groups_that_fit(all, [&](u32 one, u32 other) { return matrix[one][other] == '1'; });
  only_ = std::ranges::all_of(groups, [](u32 group) { return group == 0; });
  members_.clear();
  for (u32 process = 0; process < all; ++process)
    if (groups[process] == groups[me]) members_.push_back(process);
}

std::vector<SeparatePair> Node::separate() const {
  std::vector<SeparatePair> found;
  for (u32 const process : expected_)
    if (!has(process) && !why_not_[process].empty())
      found.push_back({processes_.number(), process, why_not_[process]});
  return found;
}

std::string Node::why_not(u32 process) const {
  return why_not_[process].empty() ? "it can't map this one's memory" : why_not_[process];
}

bool Node::alive(u32 process) const {
  pollfd line{sockets_[process].get(), 0, 0};  // POLLHUP is reported without being asked for
  return poll(&line, 1, 0) <= 0 || (line.revents & (POLLHUP | POLLERR)) == 0;
}

}  // namespace meshpost
