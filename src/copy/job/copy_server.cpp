#include "copy/job/copy_server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "world/wire.hpp"

namespace meshpost::copying {
namespace {

Error loss(std::string const& process, std::string const& why) {
  return {
      Kind::peer_lost, "copy", fmt::format("nothing comes from {} any more: {}", process, why),
      "see its own messages and the network between the hosts; MESHPOST_PEER_DEADLINE may be too "
      "short; start the job again"};
}

}  // namespace

CopyServer::CopyServer(std::unique_ptr<net::Engine> engine, Store& store, u32 processes,
                       std::function<std::string(u32)> name,
                       std::unique_ptr<net::OutOfBand> out_of_band,
                       std::chrono::milliseconds timeout)
    : store_(store),
      name_(std::move(name)),
      peers_(processes),
      out_of_band_(std::move(out_of_band)),
      channel_(std::move(engine), processes, {out_of_band_.get(), timeout}),
      piece_(std::min(largest_piece, channel_.most(sizeof(Message)))) {
  channel_.serve(Message::message_kind, *this);
}

StatePtr CopyServer::ask(CopyRequest const& request) {
  Copying copying{request};
  auto state = copying.state;
  {
    std::scoped_lock const lock(mutex_);
    if (!over_) {
      requests_.push_back(std::move(copying));
      return state;
    }
  }
  state->run([&] { throw Error(*over_); });
  return state;
}

bool CopyServer::work() {
  take_requests();
  bool any = channel_.poll();
  for (u32 process = 0; process < peers_.size(); ++process) {
    any |= ask_for_pieces(process);
    any |= send_queued(process);
  }
  any |= channel_.tell(!any);
  return any;
}

void CopyServer::take_requests() {
  std::vector<Copying> requests;
  {
    std::scoped_lock const lock(mutex_);
    requests.swap(requests_);
  }
  for (auto& copying : requests) {
    auto& peer = peers_[copying.request.process];
    if (peer.lost) {
      copying.state->run([&] { throw Error(*peer.lost); });
      continue;
    }
    peer.turns.push_back(++last_copy_);
    copies_.emplace(last_copy_, std::move(copying));
  }
}

bool CopyServer::ask_for_pieces(u32 process) {
  auto& peer = peers_[process];
  bool any = false;
  while (!peer.turns.empty() && peer.under_way < window) {
    u64 const number = peer.turns.front();
    peer.turns.pop_front();
    auto& copy = copies_.at(number);
    auto const& request = copy.request;
    if (copy.error) continue;  // refused meanwhile
    any = true;
    u64 const position = copy.next, size = std::min(piece_, request.size - position);
    std::string payload;
    if (request.type == Message::Type::put) {
      // Copied out of the caller's memory: that may be a device's, and is the caller's again at
      // the end even if a network still sends.
      payload.resize(size);
      try {
        meshpost::copy(payload.data(), request.here + position, Bytes{size});
      } catch (Error const& error) {
        copy.error = error;
        end_if_over(number);
        continue;
      }
    }
    pieces_[++last_piece_] = {
        .copy = number, .position = position, .size = size, .process = process};
    queue(process,
          {.type = request.type,
           .exposure = request.exposure,
           .piece = last_piece_,
           .offset = request.offset + position,
           .bytes = size},
          std::move(payload));
    copy.next += size;
    ++copy.under_way;
    ++peer.under_way;
    if (copy.next < request.size) peer.turns.push_back(number);
  }
  return any;
}

void CopyServer::queue(u32 process, Message message, std::string payload) {
  peers_[process].queue.push_back({message, std::make_shared<std::string>(std::move(payload))});
}

bool CopyServer::send_queued(u32 process) {
  auto& peer = peers_[process];
  bool any = false;
  while (!peer.queue.empty()) {
    auto& out = peer.queue.front();
    std::string_view const header{reinterpret_cast<char const*>(&out.message), sizeof out.message};
    if (channel_.send(process, Message::message_kind,
                      {.header = header, .bytes = *out.bytes, .source = out.bytes}) ==
        net::Channel::Sent::no)
      break;
    peer.queue.pop_front();
    any = true;
  }
  return any;
}

void CopyServer::on_message(u32 process, net::Channel::Message const& come) {
  auto const message = read_message(come);
  bool const asks = message.type == Message::Type::put || message.type == Message::Type::get;
  if (asks) answer(process, message, come.bytes);
  else take_answer(process, message, come.bytes);
}

void CopyServer::answer(u32 process, Message const& asked, std::string_view bytes) {
  Message reply = asked;
  reply.type = Message::Type::done;
  std::string payload;
  try {
    if (asked.type == Message::Type::put) {
      store_.write(asked.exposure, asked.offset, bytes);
    } else {
      reply.type = Message::Type::bytes;
      payload.resize(asked.bytes);
      store_.read(asked.exposure, asked.offset, payload.data(), asked.bytes);
    }
  } catch (Error const& error) {
    reply.type = Message::Type::refusal;
    payload = wire::pack(error);
  }
  queue(process, reply, std::move(payload));
}

void CopyServer::take_answer(u32 process, Message const& answer, std::string_view bytes) {
  auto const found = pieces_.find(answer.piece);
  if (found == pieces_.end() || found->second.process != process)
    throw Error(Kind::bad_argument, "copy",
                fmt::format("the sender answers piece {}, which nobody asked for", answer.piece),
                "");
  auto const piece = found->second;
  auto& copy = copies_.at(piece.copy);
  auto const kind = answer.type;
  auto const right =
      copy.request.type == Message::Type::put ? Message::Type::done : Message::Type::bytes;
  if (kind == Message::Type::refusal) {
    if (!copy.error) copy.error = wire::unpack_error(bytes);
  } else if (kind != right || answer.bytes != piece.size) {
    throw Error(Kind::bad_argument, "copy", "the sender answers something else than was asked", "");
  } else if (kind == Message::Type::bytes && !copy.error) {
    try {
      meshpost::copy(copy.request.here + piece.position, bytes.data(), Bytes{piece.size});
    } catch (Error const& error) {
      copy.error = error;
    }
  }
  pieces_.erase(found);
  --copy.under_way;
  --peers_[process].under_way;
  end_if_over(piece.copy);
}

// Not before every piece is answered: until then an answer may write into the caller's memory.
void CopyServer::end_if_over(u64 number) {
  auto const& copy = copies_.at(number);
  if (copy.under_way != 0 || (!copy.error && copy.next < copy.request.size)) return;
  std::erase(peers_[copy.request.process].turns, number);
  auto const over = copies_.extract(number);
  over.mapped().state->run([&] {
    if (over.mapped().error) throw Error(*over.mapped().error);
  });
}

void CopyServer::on_lost(u32 process, std::string const& why) {
  auto& peer = peers_[process];
  if (peer.lost) return;
  peer.lost = loss(name_(process), why);
  peer.queue.clear();
  peer.turns.clear();
  peer.under_way = 0;
  std::erase_if(pieces_, [&](auto const& one) { return one.second.process == process; });
  std::vector<u64> over;
  for (auto& [number, copy] : copies_)
    if (copy.request.process == process) {
      if (!copy.error) copy.error = peer.lost;
      copy.under_way = 0;
      over.push_back(number);
    }
  for (u64 const number : over) end_if_over(number);
}

void CopyServer::close(Error const& error) {
  std::vector<Copying> requests;
  {
    std::scoped_lock const lock(mutex_);
    if (!over_) over_ = error;
    requests.swap(requests_);
  }
  for (auto& copying : requests) copying.state->run([&] { throw Error(error); });
  for (auto& [number, copy] : copies_) copy.state->run([&] { throw Error(error); });
  copies_.clear();
  pieces_.clear();
  for (auto& peer : peers_) peer.turns.clear();
}

}  // namespace meshpost::copying
