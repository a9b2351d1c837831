// The chunks of requests: sent to peers, and taken from them.
#include <fmt/format.h>

#include <algorithm>

#include "base/caught.hpp"
#include "compat/mp/engine.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {

bool Engine::progress() {
  Lock const lock(mutex_);
  return carry_on(lock);
}

bool Engine::carry_on(Lock const& /*lock*/) {
  if (failure_) return false;
  bool any = false;
  try {
    for (u32 const process : peers_) {
      auto& peer = at_.at(process);
      bool moved = false;
      for (u32 lane = 0; lane < ChannelShape::lanes; ++lane)
        moved |= take_from(process, peer, lane);
      moved |= reply_to(process, peer);
      moved |= send_to(process, peer);
      moved |= end_in_flight(process, peer);
      if (moved) ++peer.progress;
      any |= moved;
    }
    any |= end_watches();
  } catch (...) {
    fail(caught("carry out LibMP's requests"));
  }
  return any;
}

bool Engine::send_to(u32 process, Peer& peer) {
  Channels::End const to{process, 0};
  bool any = false;
  while (!peer.outgoing.empty()) {
    auto& request = *peer.outgoing.front();
    auto const& what = request.what;
    if (!request.words.has_rung() || channels_.room(to) == 0) return any;
    any = true;
    u64 const size = what.size();
    ChunkHeader header{.total = size,
                       .offset = request.moved,
                       .window = what.window,
                       .displacement = what.displacement,
                       .request = request.number};
    if (what.kind == Task::get) {
      header.kind = ChunkHeader::get, header.offset = 0;
      peer.outgoing.pop_front();
      request.sent = true;
      ++peer.gets;
      channels_.send(to, header, [](char*) {});
      continue;  // the reply ends it
    }
    header.kind = what.kind == Task::put ? ChunkHeader::put : ChunkHeader::message;
    header.bytes = static_cast<u32>(std::min(size - request.moved, channels_.shape().slot_bytes));
    channels_.send(to, header, [&](char* bytes) {
      if (what.inlined.empty()) what.buffer.read(request.moved, bytes, header.bytes);
      else std::copy_n(what.inlined.data() + request.moved, header.bytes, bytes);
    });
    request.moved += header.bytes;
    if (request.moved < size) continue;
    request.chunks = channels_.sent(to);
    request.sent = true;
    peer.outgoing.pop_front();
    peer.in_flight.push_back(&request);
  }
  return any;
}

bool Engine::reply_to(u32 process, Peer& peer) {
  Channels::End const to{process, 1};
  bool any = false;
  while (!peer.replies.empty() && channels_.room(to) != 0) {
    any = true;
    auto& reply = peer.replies.front();
    u64 const size = reply.source.size();
    ChunkHeader const header{
        .kind = ChunkHeader::reply,
        .bytes = static_cast<u32>(std::min(size - reply.moved, channels_.shape().slot_bytes)),
        .total = size,
        .offset = reply.moved,
        .request = reply.request};
    channels_.send(to, header,
                   [&](char* bytes) { reply.source.read(reply.moved, bytes, header.bytes); });
    reply.moved += header.bytes;
    if (reply.moved == size) peer.replies.pop_front();
  }
  return any;
}

bool Engine::end_in_flight(u32 process, Peer& peer) {
  bool any = false;
  while (!peer.in_flight.empty() && channels_.taken({process, 0}, peer.in_flight.front()->chunks)) {
    auto& request = *peer.in_flight.front();
    peer.in_flight.pop_front();
    finish(request);
    any = true;
  }
  return any;
}

bool Engine::end_watches() {
  bool any = false;
  for (std::size_t i = 0; i < watches_.size();) {
    auto& request = *watches_[i];
    auto const& what = request.what;
    bool const stores = what.kind == Task::store;
    if (!request.words.has_rung() || (!stores && !what.awaited.holds())) {
      ++i;
      continue;
    }
    if (stores) memory::store(what.stored, what.value, Order::system);
    watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(request);
    any = true;
  }
  return any;
}

bool Engine::take_from(u32 process, Peer& peer, u32 lane) {
  bool any = false;
  Channels::Chunk chunk;
  while (channels_.next({process, lane}, chunk) && take(process, peer, chunk)) {
    channels_.take({process, lane});
    any = true;
  }
  return any;
}

// False: it stays where it is.
bool Engine::take(u32 process, Peer& peer, Channels::Chunk const& chunk) {
  switch (chunk.header.kind) {
    case ChunkHeader::message: return take_message(process, peer, chunk);
    case ChunkHeader::put: take_put(process, chunk); break;
    case ChunkHeader::get: take_get(process, peer, chunk); break;
    case ChunkHeader::reply: take_reply(peer, chunk); break;
  }
  return true;
}

bool Engine::take_message(u32 process, Peer& peer, Channels::Chunk const& chunk) {
  if (peer.receives.empty()) return false;
  auto& request = *peer.receives.front();
  auto const& header = chunk.header;
  if (header.total > request.what.size())
    throw Error(Kind::bad_argument, "mp_irecv",
                fmt::format("a message of {} bytes has come from process {}; the next receive from "
                            "it is for {} bytes",
                            header.total, process, request.what.size()),
                "receive with at least the bytes that are sent");
  request.what.buffer.write(header.offset, chunk.bytes, header.bytes);
  request.moved = header.offset + header.bytes;
  if (request.moved < header.total) return true;
  peer.receives.pop_front();
  finish(request);
  return true;
}

void Engine::take_put(u32 process, Channels::Chunk const& chunk) {
  auto const& header = chunk.header;
  auto const found = windows_.find(header.window);
  if (found == windows_.end())
    throw Error(Kind::misuse, "mp_iput",
                fmt::format("{} bytes have come from process {} for a window that was destroyed",
                            header.total, process),
                "destroy a window when all puts to it are complete");
  Buffer(static_cast<char*>(found->second.memory) + header.displacement, header.total)
      .write(header.offset, chunk.bytes, header.bytes);
}

void Engine::take_get(u32 process, Peer& peer, Channels::Chunk const& chunk) {
  auto const& header = chunk.header;
  auto const found = windows_.find(header.window);
  if (found == windows_.end())
    throw Error(Kind::misuse, "mp_iget",
                fmt::format("process {} asks for {} bytes of a window that was destroyed", process,
                            header.total),
                "destroy a window when all gets from it are complete");
  peer.replies.push_back(
      {header.request,
       Buffer(static_cast<char*>(found->second.memory) + header.displacement, header.total)});
}

void Engine::take_reply(Peer& peer, Channels::Chunk const& chunk) {
  auto const& header = chunk.header;
  auto& request = *requests_.at(header.request);
  request.what.buffer.write(header.offset, chunk.bytes, header.bytes);
  request.moved = header.offset + header.bytes;
  if (request.moved != header.total) return;
  --peer.gets;
  finish(request);
}

}  // namespace meshpost::compat::mp
