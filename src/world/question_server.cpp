#include "world/question_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshpost {
namespace {

constexpr u32 notices = u32{1} << 30;    // of the bootstrap's channels, beside the group's own
constexpr u64 largest = u64{256} << 10;  // longer messages hold up others for long

}  // namespace

QuestionServer::QuestionServer(std::unique_ptr<net::Engine> engine, ProcessGroup const& group,
                               Answer answer)
    : answer_(std::move(answer)),
      peers_(group.count()),
      out_of_band_(group.processes(), group.channel() | notices),
      channel_(std::move(engine), group.count(), {&out_of_band_, group.processes().job().silence}),
      most_(std::min(largest, channel_.most(sizeof(Header)))) {
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
    peers_[process].queue.push_back({{Header::Type::question, last_}, std::move(question)});
  }
}

bool QuestionServer::send_queued(u32 process) {
  auto& queue = peers_[process].queue;
  bool any = false;
  for (; !queue.empty(); queue.pop_front(), any = true) {
    auto& out = queue.front();
    std::string_view const header{reinterpret_cast<char const*>(&out.header), sizeof out.header};
    if (channel_.send(process, message_kind,
                      {.header = header, .bytes = *out.bytes, .source = out.bytes}) ==
        net::Channel::Sent::no)
      break;
  }
  return any;
}

void QuestionServer::on_message(u32 process, net::Channel::Message const& come) {
  auto const refuse = [](std::string cause) {
    throw Error(Kind::bad_argument, "answer", std::move(cause), "");
  };
  Header header;
  if (come.header.size() != sizeof header) refuse("a message is of another size than a question");
  std::memcpy(&header, come.header.data(), sizeof header);
  if (header.type == Header::Type::question) {
    auto answer = answer_(process, come.bytes);
    if (answer.size() > most_)
      refuse(fmt::format("{} bytes were asked for, at most {} can be sent", answer.size(), most_));
    peers_[process].queue.push_back(
        {{Header::Type::answer, header.number}, std::make_shared<std::string>(std::move(answer))});
    return;
  }
  auto const found = asked_.find(header.number);
  if (header.type != Header::Type::answer || found == asked_.end() ||
      found->second.process != process)
    refuse(fmt::format("question {} is answered, which nobody asked", header.number));
  found->second.asked->end(std::string(come.bytes));
  asked_.erase(found);
}

void QuestionServer::on_lost(u32 process, std::string const& why) { lose(process, why); }

void QuestionServer::lose(u32 process, std::string const& why) {
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
  for (u32 process = 0; process < peers_.size(); ++process) lose(process, error.cause());
  std::vector<Request> requests;
  {
    std::scoped_lock const lock(mutex_);
    over_ = true;
    requests.swap(requests_);
  }
  for (auto& request : requests) request.asked->end(std::nullopt);
}

}  // namespace meshpost
