#include "children.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "meshpost/base/held.hpp"

namespace meshpost::launch {

Children::Children(Reports& reports) : reports_(reports) {
  // When a process ends, its children become children of this process. Otherwise the launcher could
  // not tell when they have ended.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Children::~Children() {
  signal(SIGKILL);
  for (auto const& member :
       members_)  // also those of its group, which are children of this process by now
    while (::waitpid(-member.pid, nullptr, 0) > 0 || errno == EINTR) continue;
  remove_unheld(shared_memory_folder);  // files left by processes that did not end normally
}

pid_t Children::start(u32 process, Spawn const& spawn) {
  auto child = launch::start(spawn);
  guard_.watch(child.pid);
  members_.push_back({process, child.pid, false});
  streams_.push_back(std::make_unique<Stream>(Stream{process, 1, std::move(child.output)}));
  streams_.push_back(std::make_unique<Stream>(Stream{process, 2, std::move(child.errors)}));
  if (child.input) input_ = std::move(child.input);
  return child.pid;
}

void Children::watch(Poller& poller) {
  for (auto const& stream : streams_)
    if (stream->fd && !reports_.full(stream->number))
      poller.watch(stream->fd.get(), POLLIN, [this, one = stream.get()] { read_some(*one); });
  if (!input_) return;
  if (!given_.empty()) poller.watch(input_.get(), POLLOUT, [this] { write_input(); });
  else if (std::ranges::any_of(members_, [](auto const& one) { return !one.ended; }))
    poller.watch(0, POLLIN, [this] { read_input(); });
}

// One signal may stand for several ends; it then names the first.
void Children::collect(pid_t child) {
  auto const member =
      std::ranges::find_if(members_, [&](auto const& one) { return one.pid == child; });
  if (member != members_.end()) collect(*member);
  else if (child != guard_.pid())
    ::waitpid(child, nullptr, WNOHANG);  // a descendant of one of them
  for (auto& one : members_) collect(one);
}

void Children::collect(Member& member) {
  siginfo_t how{};
  if (member.ended ||
      ::waitid(P_PID, static_cast<id_t>(member.pid), &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      how.si_pid == 0)
    return;
  member.ended = true;
  for (auto const& stream : streams_)  // its last output comes before the report of its end
    if (stream->process == member.process) drain(*stream);
  reports_.ended(member.process, {how.si_code != CLD_EXITED, how.si_status});
}

void Children::signal(int number) {
  for (auto const& member : members_) ::kill(-member.pid, number);
}

void Children::read_input() {
  std::array<char, 65536> bytes;
  auto const size = ::read(0, bytes.data(), bytes.size());
  if (size > 0) given_.assign(bytes.data(), static_cast<std::size_t>(size));
  else if (size == 0 || (errno != EINTR && errno != EAGAIN)) input_.close();
}

void Children::write_input() {
  auto const size = ::write(input_.get(), given_.data(), given_.size());
  if (size > 0) given_.erase(0, static_cast<std::size_t>(size));
  else if (errno != EINTR && errno != EAGAIN) input_.close();  // it reads no more
}

bool Children::open() const {
  return std::ranges::any_of(streams_, [](auto const& one) { return static_cast<bool>(one->fd); });
}

void Children::close() {
  for (auto const& stream : streams_) {
    drain(*stream);
    end(*stream);
  }
}

// Returns true if there may be more at once.
bool Children::read_some(Stream& stream) {
  std::array<char, 65536> bytes;
  auto const size = ::read(stream.fd.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size > 0)
    reports_.printed(stream.process, stream.number, {bytes.data(), static_cast<std::size_t>(size)});
  else end(stream);
  return size > 0;
}

void Children::drain(Stream& stream) {
  // Pipes hold 64 KiB. A process that writes faster than this loop reads must not block it for
  // ever.
  for (int i = 0; i < 64 && stream.fd && read_some(stream); ++i) continue;
}

void Children::end(Stream& stream) {
  if (!stream.fd) return;
  stream.fd.close();
  reports_.printed_all(stream.process, stream.number);
}

}  // namespace meshpost::launch
