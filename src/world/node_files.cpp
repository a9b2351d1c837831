// How files pass between the processes of a node.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "world/node.hpp"
#include "world/open_files.hpp"

namespace meshpost {
namespace {

constexpr char const* operation = "share memory";
constexpr u32 files_at_once = 64;  // in a message; Linux takes 253

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
  if (received != sizeof count) {
    if (received == 0) errno = 0;
    return false;
  }
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
  errno = (message.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : 0;  // Linux drops what has no room
  return files.size() - before == count;
}

}  // namespace

void Node::share(std::vector<Descriptor> const& mine,
                 std::function<void(u32 process, u32 number, int file)> const& take) {
  auto const gone = [&](u32 process) {
    if (is_lack_of_files(errno))
      throw lack_of_files(operation, "files can't be sent", errno, processes_.count());
    bool const late = errno == EAGAIN || errno == EWOULDBLOCK;
    throw Error(
        late ? Kind::deadline : Kind::peer_lost, operation,
        fmt::format("{} {}", processes_.name(process),
                    late ? fmt::format("does not answer for {} s", patience.count()) : "is gone"),
        "see its own messages, and start the job again");
  };
  // What fails here must not keep the others from getting on, nor the next files from their place.
  std::optional<Error> failed;
  auto const receive = [&](u32 process) {
    std::vector<Descriptor> files;
    for (u32 here = files_at_once; here == files_at_once;) {
      if (receive_files(sockets_[process].get(), files, here)) continue;
      if (errno != EMFILE) gone(process);
      failed = lack_of_files(operation, "files of other processes can't be taken", errno,
                             processes_.count());
    }
    try {
      for (u32 number = 0; !failed && number < files.size(); ++number)
        take(process, number, files[number].get());
    } catch (Error const& error) {
      failed = error;
    }
  };
  auto awaited = members_;
  std::erase(awaited, processes_.number());
  auto const receive_what_comes = [&](std::chrono::milliseconds within) {
    std::vector<pollfd> lines;
    lines.reserve(awaited.size());
    for (u32 const process : awaited) lines.push_back({sockets_[process].get(), POLLIN, 0});
    if (poll(lines.data(), lines.size(), static_cast<int>(within.count())) == 0) return false;
    auto const asked = std::exchange(awaited, {});
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (lines[i].revents == 0) awaited.push_back(asked[i]);
      else receive(asked[i]);
    return true;
  };
  // All send before anybody waits: a few hundred bytes lie in the sockets. But Linux limits how
  // many files of a user are under way in all: where there are as many, some must be taken first.
  auto const until = std::chrono::steady_clock::now() + patience;
  auto const total = static_cast<u32>(mine.size());
  for (u32 const process : members_) {
    if (process == processes_.number()) continue;
    for (u32 sent = 0;; sent += files_at_once) {  // a message that is not full is the last one
      u32 const here = std::min(files_at_once, total - sent);
      while (!send_files(sockets_[process].get(), mine.data() + sent, here)) {
        if (errno != ETOOMANYREFS || std::chrono::steady_clock::now() >= until) gone(process);
        receive_what_comes(std::chrono::milliseconds(1));
      }
      if (here < files_at_once) break;
    }
  }
  while (!awaited.empty())
    if (!receive_what_comes(patience)) {
      errno = EAGAIN;
      gone(awaited.front());
    }
  if (failed) throw Error(*failed);
}

}  // namespace meshpost
