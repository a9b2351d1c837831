#include "world/question_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace meshpost {
namespace {

constexpr u32 notices = u32{1} << 30;  // of the bootstrap's channels, beside the group's own

// Makes the sender lost.
[[noreturn]] void refuse(std::string cause) {
  throw Error(Kind::bad_argument, "answer", std::move(cause), "");
}

}  // namespace

QuestionServer::QuestionServer(std::unique_ptr<net::Engine> engine, ProcessGroup const& group,
                               Answer answer)
    : answer_(std::move(answer)),
      peers_(group.count()),
      out_of_band_(group.processes(), group.channel() | notices),
      channel_(std::move(engine), group.count(), {&out_of_band_, group.processes().job().silence}),
      part_(channel_.most(sizeof(Header))) {
  channel_.serve(message_kind, *this);
}

QuestionServer::AskedPtr QuestionServer::ask(u32 process, std::shared_ptr<std::string> question) {
  auto asked = std::make_shared<Asked>();
  {
    std::scoped_lock const lock(mutex_);
    if (!over_) {
      requests_.push_back({process, std::move(question), asked});
      return asked;
    }
  }
  asked->end(std::nullopt);
  return asked;
}

bool QuestionServer::work() {
  take_requests();
  bool any = channel_.poll();
  for (u32 process = 0; process < peers_.size(); ++process) any |= send_queued(process);
  any |= channel_.tell(!any);
  return any;
}

bool QuestionServer::idle() const {
  return asked_.empty() && channel_.reads_nothing() &&
         std::ranges::all_of(peers_, [](auto const& peer) { return peer.queue.empty(); });
}

void QuestionServer::take_requests() {
  std::vector<Request> requests;
  {
    std::scoped_lock const lock(mutex_);
    requests.swap(requests_);
  }
  for (auto& [process, question, asked] : requests) {
    if (!reaches(process)) {
      asked->end(std::nullopt);
      continue;
    }
    asked_[++last_] = {process, std::move(asked)};
    queue(process, Header::Type::question, last_, std::move(question));
  }
}

void QuestionServer::queue(u32 process, Header::Type type, u64 number,
                           std::shared_ptr<std::string> bytes) {
  Header const header{type, number, bytes->size()};
  peers_[process].queue.push_back({header, std::move(bytes)});
}

bool QuestionServer::send_queued(u32 process) {
  auto& queue = peers_[process].queue;
  bool any = false;
  for (; !queue.empty(); any = true) {
    auto& out = queue.front();
    std::string_view const header{reinterpret_cast<char const*>(&out.header), sizeof out.header};
    auto const part = std::string_view(*out.bytes).substr(out.sent, part_);
    if (channel_.send(process, message_kind,
                      {.header = header, .bytes = part, .source = out.bytes}) ==
        net::Channel::Sent::no)
      break;
    out.sent += part.size();
    if (out.sent == out.bytes->size()) queue.pop_front();
  }
  return any;
}

void QuestionServer::on_message(u32 process, net::Channel::Message const& come) {
  Header header;
  if (come.header.size() != sizeof header) refuse("a message is of another size than a question");
  std::memcpy(&header, come.header.data(), sizeof header);
  if (header.bytes > most)
    refuse(fmt::format("{} bytes are announced, it may be {}", header.bytes, most));
  auto& peer = peers_[process];
  if (peer.parts.empty()) {
    if (come.bytes.size() == header.bytes) return take(process, header, come.bytes);
    peer.comes = header;
    peer.parts.reserve(header.bytes);
  }
  bool const same = header.type == peer.comes.type && header.number == peer.comes.number &&
                    header.bytes == peer.comes.bytes;
  if (!same || come.bytes.empty() || come.bytes.size() > header.bytes - peer.parts.size())
    refuse("a message is not the next part of a question or an answer");
  peer.parts += come.bytes;
  if (peer.parts.size() == header.bytes) take(process, header, std::exchange(peer.parts, {}));
}

void QuestionServer::take(u32 process, Header const& header, std::string_view bytes) {
  if (header.type == Header::Type::question) {
    auto answer = answer_(process, bytes);
    if (answer.size() > most)
      refuse(fmt::format("{} bytes were asked for, it may be {}", answer.size(), most));
    return queue(process, Header::Type::answer, header.number,
                 std::make_shared<std::string>(std::move(answer)));
  }
  auto const found = asked_.find(header.number);
  if (header.type != Header::Type::answer || found == asked_.end() ||
      found->second.process != process)
    refuse(fmt::format("question {} is answered, which nobody asked", header.number));
  found->second.asked->end(std::string(bytes));
  asked_.erase(found);
}

void QuestionServer::on_lost(u32 process, std::string const& why) {
  auto& peer = peers_[process];
  if (peer.lost) return;
  peer.queue.clear();
  peer.why = why;
  peer.in_doubt =
      std::ranges::any_of(asked_, [&](auto const& one) { return one.second.process == process; });
  peer.lost.store(true, std::memory_order_release);  // before its askers hear of it
  std::erase_if(asked_, [&](auto const& one) {
    if (one.second.process != process) return false;
    one.second.asked->end(std::nullopt);
    return true;
  });
}

void QuestionServer::close(Error const& error) {
  for (u32 process = 0; process < peers_.size(); ++process) on_lost(process, error.cause());
  std::vector<Request> requests;
  {
    std::scoped_lock const lock(mutex_);
    over_ = true;
    requests.swap(requests_);
  }
  for (auto& request : requests) request.asked->end(std::nullopt);
}

}  // namespace meshpost
