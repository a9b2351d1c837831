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
#include "world/secret.hpp"
#include "world/wire.hpp"

// Sockets are abstract ones: they leave nothing behind, and processes in different network
// namespaces don't find each other's. Their names are random, and both ends see to it that the
// other is the same user's. Whether memory can be shared is then tried out.

namespace meshpost {
namespace {

constexpr char const* operation = "find out who shares memory";
constexpr u32 files_at_once = 64;  // in a message; Linux takes 253
constexpr auto patience = std::chrono::seconds(20);

struct Door {
  std::string boot, host, node, name;
};

std::string pack(Door const& door) {
  return wire::Packer().text(door.boot).text(door.host).text(door.node).text(door.name).take();
}
Door unpack_door(std::string_view bytes) {
  wire::Unpacker unpacker(bytes);
  Door door;
  for (auto* const text : {&door.boot, &door.host, &door.node, &door.name}) *text = unpacker.text();
  return door;
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

void set_patience(int socket) {
  timeval const limit{patience.count(), 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// A few files with their number; as many as `count`, in one message.
bool send_files(int socket, Descriptor const* files, u32 count) {
  iovec text{&count, sizeof count};
  alignas(cmsghdr) char control[CMSG_SPACE(files_at_once * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (u32 i = 0; i < count; ++i) {
      int const file = files[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), &file, sizeof file);
    }
  }
  ssize_t sent = 0;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == sizeof count;
}

bool receive_files(int socket, std::vector<Descriptor>& files, u32& count) {
  iovec text{&count, sizeof count};
  alignas(cmsghdr) char control[CMSG_SPACE(files_at_once * sizeof(int))];
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received = 0;
  do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received != sizeof count) return false;
  std::size_t const before = files.size();
  for (auto* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    u64 const there = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (u64 i = 0; i < there; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + i * sizeof(int), sizeof file);
      files.emplace_back(file);
    }
  }
  return files.size() - before == count;
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
    : processes_(processes), sockets_(processes.count()), why_not_(processes.count()) {
  auto const name = Secret(random_bytes()).hex();
  Descriptor const door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto const [address, size] = abstract_address(name);
  if (!door || bind(door.get(), reinterpret_cast<sockaddr const*>(&address), size) != 0 ||
      listen(door.get(), static_cast<int>(processes.count())) != 0)
    throw Error(Kind::bad_environment, operation,
                fmt::format("no Unix socket is to be had: {}", std::strerror(errno)),
                "raise the limit of open files (ulimit -n)");
  call_lower(processes.exchange(
      channel, operation,
      pack(Door{join::boot_id(), join::host_name(), processes.job().node, name})));
  auto const reached = processes.exchange(channel, operation, pack_flags(sockets_));
  std::vector<bool> coming(processes.count());
  for (u32 process = processes.number() + 1; process < processes.count(); ++process)
    coming[process] = unpack_flags(reached[process])[processes.number()];
  answer_higher(door, coming);
  test_memory(channel);
}

void Node::call_lower(std::vector<std::string> const& doors) {
  auto const own = unpack_door(doors[processes_.number()]);
  for (u32 process = 0; process < processes_.count(); ++process) {
    auto const other = unpack_door(doors[process]);
    // A container of a host has a name of its own where it has devices of its own.
    hosts_.push_back(other.host + ' ' + other.boot);
    if (!own.boot.empty() && other.boot == own.boot && other.node == own.node)
      expected_.push_back(process);
    if (other.node != own.node) {
      why_not_[process] =
          fmt::format("MESHPOST_NODE is '{}' there and '{}' here", other.node, own.node);
    } else if (process < processes_.number()) {
      Descriptor line(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      auto const [address, size] = abstract_address(other.name);
      if (!line || connect(line.get(), reinterpret_cast<sockaddr const*>(&address), size) != 0) {
        why_not_[process] = fmt::format(
            "its Unix socket is out of reach ({}): another host, container or network namespace",
            std::strerror(errno));
      } else if (!same_user(line.get())) {
        why_not_[process] = "it is another user's";
      } else {
        u32 const number = processes_.number();
        set_patience(line.get());
        if (send(line.get(), &number, sizeof number, MSG_NOSIGNAL) == sizeof number)
          sockets_[process] = std::move(line);
      }
    }
  }
}

void Node::answer_higher(Descriptor const& door, std::vector<bool> const& coming) {
  set_patience(door.get());  // accept() obeys it too
  for (auto left = std::ranges::count(coming, true); left > 0;) {
    Descriptor line(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!line && errno == EINTR) continue;
    if (!line)
      throw Error(Kind::deadline, operation, "a process that came to the door is gone",
                  "see the messages of the others");
    set_patience(line.get());
    u32 number = 0;
    if (!same_user(line.get()) ||
        recv(line.get(), &number, sizeof number, MSG_WAITALL) != sizeof number ||
        number >= coming.size() || !coming[number] || sockets_[number])
      continue;  // a stranger
    sockets_[number] = std::move(line);
    --left;
  }
}

// Whoever can map a page of mine and read what I wrote there shares memory with me.
void Node::test_memory(u32 channel) {
  u32 const me = processes_.number(), all = processes_.count();
  for (u32 process = 0; process < all; ++process)
    if (process == me || sockets_[process]) members_.push_back(process);
  Descriptor page(memfd_create("meshpost-test", MFD_CLOEXEC));
  auto const word = random_bytes();
  if (!page || write(page.get(), word.data(), word.size()) != static_cast<ssize_t>(word.size()))
    throw Error(Kind::bad_environment, operation,
                fmt::format("no memory file is to be had: {}", std::strerror(errno)),
                "raise the limit of open files (ulimit -n), or of memory");
  auto const words = processes_.exchange(channel, operation, {word.data(), word.size()});
  std::vector<Descriptor> mine;
  mine.push_back(std::move(page));
  std::string seen(all, '0');
  seen[me] = '1';
  share(mine, [&](u32 process, u32, int file) {
    void* const there = mmap(nullptr, word.size(), PROT_READ, MAP_SHARED, file, 0);
    bool const right =
        there != MAP_FAILED && std::memcmp(there, words[process].data(), word.size()) == 0;
    if (there != MAP_FAILED) munmap(there, word.size());
    if (right) seen[process] = '1';
    else why_not_[process] = fmt::format("its memory can't be mapped: {}", std::strerror(errno));
  });
  auto const matrix = processes_.exchange(channel, operation, seen);
  auto const groups =
      groups_that_fit(all, [&](u32 one, u32 other) { return matrix[one][other] == '1'; });
  only_ = std::ranges::all_of(groups, [](u32 group) { return group == 0; });
  members_.clear();
  for (u32 process = 0; process < all; ++process)
    if (groups[process] == groups[me]) members_.push_back(process);
}

std::vector<Parted> Node::parted() const {
  std::vector<Parted> found;
  for (u32 const process : expected_)
    if (!has(process) && !why_not_[process].empty())
      found.push_back({processes_.number(), process, why_not_[process]});
  return found;
}

std::string Node::why_not(u32 process) const {
  return why_not_[process].empty() ? "it can't map this one's memory" : why_not_[process];
}

bool Node::alive(u32 process) const {
  pollfd line{sockets_[process].get(), 0, 0};  // its end is told in any case
  return poll(&line, 1, 0) <= 0 || (line.revents & (POLLHUP | POLLERR)) == 0;
}

void Node::share(std::vector<Descriptor> const& mine,
                 std::function<void(u32 process, u32 number, int file)> const& take) {
  auto const gone = [&](u32 process) {
    bool const late = errno == EAGAIN || errno == EWOULDBLOCK;
    throw Error(
        late ? Kind::deadline : Kind::peer_lost, "share memory",
        fmt::format("{} {}", processes_.name(process),
                    late ? fmt::format("does not answer for {} s", patience.count()) : "is gone"),
        "see its own messages, and start the job again");
  };
  // All send before anybody receives: a few hundred bytes wait in the sockets.
  auto const total = static_cast<u32>(mine.size());
  for (u32 const process : members_) {
    if (process == processes_.number()) continue;
    for (u32 sent = 0;; sent += files_at_once) {  // a message that is not full is the last one
      u32 const here = std::min(files_at_once, total - sent);
      if (!send_files(sockets_[process].get(), mine.data() + sent, here)) gone(process);
      if (here < files_at_once) break;
    }
  }
  for (u32 const process : members_) {
    if (process == processes_.number()) continue;
    std::vector<Descriptor> files;
    for (u32 here = files_at_once; here == files_at_once;)
      if (!receive_files(sockets_[process].get(), files, here)) gone(process);
    for (u32 number = 0; number < files.size(); ++number)
      take(process, number, files[number].get());
  }
}

}  // namespace meshpost
