// How files pass between the processes of a node.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "base/host_hooks.hpp"
#include "world/node.hpp"
#include "world/open_files.hpp"

namespace meshpost {
namespace {

constexpr char const* files_operation = "share memory";
constexpr u32 files_at_once = 64;  // in a message; Linux takes 253

// Goes before the files of each message. A process that fails half-way leaves messages in its
// sockets. The turn tells them from the next ones.
struct FilesHeader {
  u64 turn;   // the same in all processes while they share
  u32 count;  // of files in this message; fewer than files_at_once: it is the last
  u32 unused = 0;
};

bool send_files(int socket, Descriptor const* files, FilesHeader header_of) {
  iovec text{&header_of, sizeof header_of};
  alignas(cmsghdr) char control[CMSG_SPACE(files_at_once * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  u32 const count = header_of.count;
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
  return sent == sizeof header_of;
}

bool receive_files(int socket, std::vector<Descriptor>& files, FilesHeader& header_of) {
  iovec text{&header_of, sizeof header_of};
  alignas(cmsghdr) char control[CMSG_SPACE(files_at_once * sizeof(int))];
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received = 0;
  do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received != sizeof header_of) {
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
  errno = (message.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : 0;  // Linux drops files without room
  return files.size() - before == header_of.count;
}

}  // namespace

void Node::share(std::vector<Descriptor> const& mine,
                 std::function<void(u32 process, u32 number, int file)> const& take) {
  u64 const turn = processes_.exchanges(channel_);
  Deadline silence(processes_.job().silence);
  auto const gone = [&](u32 process) {
    if (is_lack_of_files(errno))
      throw lack_of_files(files_operation, "files can't be sent", errno, processes_.count());
    bool const late = errno == EAGAIN || errno == EWOULDBLOCK;
    throw Error(late ? Kind::deadline : Kind::peer_lost, files_operation,
                fmt::format("{} {}", processes_.name(process),
                            late ? "does not answer for " + silence.text() : "is gone"),
                "see its own messages, and start the job again");
  };
  // An error here must not stop the exchange of the others, nor mix up the files of the next one.
  std::optional<Error> failed;
  struct Sender {
    u32 process;
    std::vector<Descriptor> files;
  };
  std::vector<Sender> awaited;
  for (u32 const process : members_)
    if (process != processes_.number()) awaited.push_back({process, {}});
  // Receives one message. Returns true if it was the sender's last one.
  auto const receive = [&](Sender& from) {
    auto const before = static_cast<std::ptrdiff_t>(from.files.size());
    FilesHeader header{};
    if (!receive_files(sockets_[from.process].get(), from.files, header)) {
      if (errno != EMFILE) gone(from.process);
      failed = lack_of_files(files_operation, "files of other processes can't be received", errno,
                             processes_.count());
    }
    if (header.turn != turn) {  // of an earlier exchange, which failed
      from.files.erase(from.files.begin() + before, from.files.end());
      return false;
    }
    if (header.count == files_at_once) return false;
    try {
      for (u32 number = 0; !failed && number < from.files.size(); ++number)
        take(from.process, number, from.files[number].get());
    } catch (Error const& error) {
      failed = error;
    }
    from.files.clear();  // before the next ones come: a process may have few descriptors
    return true;
  };
  auto const receive_what_comes = [&](std::chrono::milliseconds within) {
    std::vector<pollfd> lines;
    lines.reserve(awaited.size());
    for (auto const& from : awaited) lines.push_back({sockets_[from.process].get(), POLLIN, 0});
    if (poll(lines.data(), lines.size(), static_cast<int>(within.count())) <= 0) return false;
    auto asked = std::exchange(awaited, {});
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (lines[i].revents == 0 || !receive(asked[i])) awaited.push_back(std::move(asked[i]));
    silence.renew();
    return true;
  };
  // All send before anybody waits, because the sockets can hold a few hundred bytes. But Linux
  // limits how many files of a user are in flight in total. At that limit some must be received
  // first.
  auto const total = static_cast<u32>(mine.size());
  for (u32 const process : members_) {
    if (process == processes_.number()) continue;
    for (u32 sent = 0;; sent += files_at_once) {
      u32 const here = std::min(files_at_once, total - sent);
      while (!send_files(sockets_[process].get(), mine.data() + sent, {turn, here})) {
        if (errno != ETOOMANYREFS || silence.ends()) gone(process);
        receive_what_comes(std::chrono::milliseconds(1));
      }
      if (here < files_at_once) break;
    }
  }
  hooks::at("take files of others");
  while (!awaited.empty())
    if (!receive_what_comes(Deadline::usual_gap / 2) && silence.ends()) {
      errno = EAGAIN;
      gone(awaited.front().process);
    }
  if (failed) throw Error(*failed);
}

}  // namespace meshpost
