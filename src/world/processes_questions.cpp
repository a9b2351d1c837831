#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include "world/processes_state.hpp"

// A question goes from the asker to process 0, and from there to the process that is asked. The
// answer goes back the same way.

namespace meshpost {

void Processes::Implementation::route_question(u32 from, wire::Header header,
                                               std::string const& bytes) {
  u32 const to = header.process;
  header.process = from;
  if (to == 0) take_question(from, header, bytes);
  else if (to < job_.processes) send(to, header, bytes);
}

void Processes::Implementation::take_question(u32 from, wire::Header header,
                                              std::string const& bytes) {
  auto const found = answers_.find(header.channel);
  auto const answer = found == answers_.end() ? std::string() : found->second(from, bytes);
  header.type = wire::Type::reply;
  header.process = from;
  if (hub()) route_reply(header, answer);
  else send(0, header, answer);
}

void Processes::Implementation::route_reply(wire::Header const& header, std::string const& bytes) {
  if (header.process == 0) replies_[header.sequence] = bytes;
  else if (header.process < job_.processes) send(header.process, header, bytes);
  changed_.notify_all();
}

std::string Processes::Implementation::ask(u32 channel, u32 process, std::string const& question) {
  std::unique_lock lock(mutex_);
  u64 const number = ++questions_;
  wire::Header const header{
      .type = wire::Type::ask, .process = process, .channel = channel, .sequence = number};
  if (hub()) route_question(0, header, question);
  else send(0, header, question);
  changed_.wait(lock, [&] { return replies_.contains(number) || gone_[process] || gone_[0]; });
  auto reply = replies_.extract(number);
  if (reply.empty()) throw_gone(fmt::format("ask process {}", process));
  return std::move(reply.mapped());
}

std::string Processes::Implementation::own_address() const {
  std::scoped_lock const lock(mutex_);
  for (auto const& line : lines_) {
    if (!line) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host[NI_MAXHOST] = {};
    if (getsockname(line->socket(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      return host;
  }
  return {};
}

}  // namespace meshpost
