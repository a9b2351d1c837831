#include "compat/mp/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/caught.hpp"
#include "base/pauses.hpp"
#include "base/thread.hpp"

namespace meshpost::compat::mp {
namespace {

char const* remedy_for(Request const& request) {
  switch (request.what.kind) {
    case Task::send:
      return "see that the other process posts a receive for it, and one for each message before";
    case Task::receive: return "see that the other process sends as many messages as this one receives";
    case Task::put:
    case Task::get:
      return "see that the other process receives the messages that were sent to it before";
    case Task::watch:
    case Task::store: break;
  }
  return "see that somebody stores the word";
}

}  // namespace

Engine::Engine(Channels channels, std::vector<u32> peers, std::shared_ptr<Device> words,
               Options options)
    : channels_(std::move(channels)),
      options_(std::move(options)),
      peers_(std::move(peers)),
      words_(std::move(words)),
      failed_(words_.take()) {
  failed_.finish();
  for (u32 const peer : peers_) at_[peer];
  if (options_.thread) thread_ = start_thread("carry out LibMP's requests", [this] { run(); });
}

Engine::~Engine() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  for (auto const& [number, request] : requests_) request->words.finish();  // for streams
}

u32 Engine::checked_peer(std::string const& operation, int peer) const {
  auto const number = static_cast<u32>(peer);
  if (peer >= 0 && at_.contains(number)) return number;
  throw Error(Kind::bad_argument, operation,
              fmt::format("process {} is none of the {} peers that mp_init got", peer, at_.size()),
              fmt::format("name one of them; there are processes 0 to {}", processes() - 1));
}

// -- windows

void Engine::add_window(u32 number, WindowPart part) {
  std::scoped_lock const lock(mutex_);
  windows_[number] = std::move(part);
}

void Engine::drop_window(u32 number) {
  std::scoped_lock const lock(mutex_);
  windows_.erase(number);
}

void Engine::check_range(std::string const& operation, u32 window, u32 peer, u64 displacement,
                         u64 bytes) const {
  std::scoped_lock const lock(mutex_);
  auto const found = windows_.find(window);
  if (found == windows_.end())
    throw Error(Kind::misuse, operation, "there is no such window, or it was destroyed",
                "use it between mp_window_create and mp_window_destroy");
  u64 const limit = found->second.sizes[peer];
  if (displacement <= limit && bytes <= limit - displacement) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("{} bytes at {} of the window of process {} were named; it has {} bytes",
                          bytes, displacement, peer, limit),
              "stay inside the window");
}

// -- requests

void Engine::throw_failure(std::string const& operation) const {
  if (!failure_) return;
  throw Error(failure_->kind(), operation,
              fmt::format("an operation has failed: {}: {}", failure_->operation(),
                          failure_->cause()),
              failure_->remedy());
}

u64 Engine::prepare(Task operation) {
  Lock const lock(mutex_);
  throw_failure("prepare an operation");
  auto request = std::make_unique<Request>();
  request->what = std::move(operation);
  request->number = next_++;
  request->words = words_.take();
  u64 const number = request->number;
  requests_.emplace(number, std::move(request));
  return number;
}

Request& Engine::unposted(std::string const& operation, u64 request) {
  throw_failure(operation);
  auto const found = requests_.find(request);
  if (found != requests_.end() && !found->second->posted) return *found->second;
  bool const any = request != 0 && request < next_;
  throw Error(Kind::misuse, operation,
              any ? "the request was posted before" : "there was no such request",
              "post each prepared request once");
}

void Engine::put_in_order(Request& request) {
  request.posted = true;
  auto const kind = request.what.kind;
  if (kind == Task::watch || kind == Task::store) return watches_.push_back(&request);
  auto& peer = at_.at(request.what.peer);
  (kind == Task::receive ? peer.receives : peer.outgoing).push_back(&request);
}

void Engine::post(std::string const& operation, u64 request) {
  Lock const lock(mutex_);
  auto& posted = unposted(operation, request);
  posted.words.ring();
  put_in_order(posted);
  carry_on(lock);
}

void Engine::post(std::string const& operation, u64 request, Stream& stream) {
  auto const words = post_by_kernel(operation, request);
  stream.store(words.rung, words.number);  // without the lock: it waits while the stream has no room
}

RequestWords Engine::post_by_kernel(std::string const& operation, u64 request) {
  Lock const lock(mutex_);
  auto& posted = unposted(operation, request);
  put_in_order(posted);
  return posted.words;
}

// Null: it is complete.
Request* Engine::awaited(std::string const& operation, u64 request) {
  if (request == 0 || request >= next_)
    throw Error(Kind::misuse, operation, "there was no such request",
                "wait for a request that a call has given");
  auto const found = requests_.find(request);
  if (found == requests_.end()) return nullptr;
  throw_failure(operation);
  auto& one = *found->second;
  if (!one.posted)
    throw Error(Kind::misuse, operation,
                fmt::format("the {} was prepared, and not posted", one.text()),
                "post it before a wait");
  if (!one.what.awaitable)
    throw Error(Kind::misuse, operation, fmt::format("the {} has MP_PUT_NOWAIT", one.text()),
                "put without this flag, or send a message behind it and wait for that");
  return &one;
}

bool Engine::complete(std::string const& operation, u64 request) {
  Lock const lock(mutex_);
  return !awaited(operation, request);
}

u64 Engine::progress_of(Request const& request) const {
  bool const has_peer =
      request.what.kind != Task::watch && request.what.kind != Task::store;
  if (!has_peer) return 0;
  return at_.at(request.what.peer).progress;
}

Error Engine::late(std::string const& operation, Request const& request,
                   Deadline const& deadline) const {
  auto const& what = request.what;
  bool const watches = what.kind == Task::watch;
  auto const so_far =
      watches ? what.awaited.text()
              : fmt::format("{} of {} bytes were moved", request.moved, what.size());
  return {Kind::deadline, operation,
          fmt::format("{}: {}, and nothing has come for {}", request.text(), so_far,
                      deadline.text()),
          fmt::format("{}, or give a longer deadline (MESHPOST_DEADLINE)", remedy_for(request))};
}

void Engine::wait(std::string const& operation, u64 request) {
  Deadline deadline(options_.deadline);
  Pauses pauses;
  for (;; pauses.rest()) {
    Lock const lock(mutex_);
    if (carry_on(lock)) pauses = {};
    auto const* const one = awaited(operation, request);
    if (!one) return;
    if (!deadline.ends(progress_of(*one)) || watched_by_debugger(deadline)) continue;
    fail(late(operation, *one, deadline));
    std::rethrow_exception(std::make_exception_ptr(*failure_));
  }
}

void Engine::wait(std::string const& operation, u64 request, Stream& stream, u32* begun,
                  u32 wait_number) {
  RequestWords words;
  {
    Lock const lock(mutex_);
    auto const* const one = awaited(operation, request);
    if (!one) return;
    words = one->words;
    stream_waits_.push_back({request, begun, wait_number, Deadline(options_.deadline)});
  }
  stream.store(begun, wait_number);
  stream.await_word(words.done, words.number);
}

RequestWords Engine::words_of(std::string const& operation, u64 request) {
  Lock const lock(mutex_);
  auto const* const one = awaited(operation, request);
  return one ? one->words : failed_;
}

void Engine::wait(std::string const& operation, AwaitedWord const& awaited) {
  Deadline deadline(options_.deadline);
  Pauses pauses;
  Request request;
  request.what = {.kind = Task::watch, .awaited = awaited};
  for (; !awaited.holds(); pauses.rest()) {
    Lock const lock(mutex_);
    throw_failure(operation);
    carry_on(lock);
    u32 const now = memory::load_relaxed(awaited.word);
    if (!deadline.ends(now) || watched_by_debugger(deadline)) continue;
    throw late(operation, request, deadline);
  }
}

void Engine::flush(std::string const& operation) {
  Deadline deadline(options_.deadline);
  Pauses pauses;
  for (;; pauses.rest()) {
    Lock const lock(mutex_);
    if (failure_) return;
    if (carry_on(lock)) pauses = {};
    Request const* open = nullptr;
    u64 progress = 0;
    for (auto const& [process, peer] : at_) {
      progress += peer.progress;
      for (auto const* const one : peer.in_flight) open = one;
      if (!peer.outgoing.empty() && peer.outgoing.front()->words.has_rung())
        open = peer.outgoing.front();
    }
    if (!open) return;
    if (!deadline.ends(progress) || watched_by_debugger(deadline)) continue;
    throw late(operation, *open, deadline);
  }
}

// The request is in no queue any more.
void Engine::finish(Request& request) {
  request.words.finish();
  words_.give(request.words);
  u64 const number = request.number;
  std::erase_if(stream_waits_, [&](auto const& wait) { return wait.request == number; });
  requests_.erase(number);
}

void Engine::fail(Error error) {
  if (failure_) return;
  failure_ = std::move(error);
  failed_.ring();
  for (auto const& [number, request] : requests_) request->words.finish();
  for (auto& [process, peer] : at_) peer = {};
  watches_.clear();
  stream_waits_.clear();
}

// -- the work

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
      ++peer.gets;
      channels_.send(to, header, [](char*) {});
      continue;  // the reply ends it
    }
    header.kind = what.kind == Task::put ? ChunkHeader::put : ChunkHeader::message;
    header.bytes =
        static_cast<u32>(std::min(size - request.moved, channels_.shape().slot_bytes));
    channels_.send(to, header, [&](char* bytes) {
      if (what.inlined.empty()) what.buffer.read(request.moved, bytes, header.bytes);
      else std::copy_n(what.inlined.data() + request.moved, header.bytes, bytes);
    });
    request.moved += header.bytes;
    if (request.moved < size) continue;
    request.chunks = channels_.sent(to);
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
  while (!peer.in_flight.empty() &&
         channels_.taken({process, 0}, peer.in_flight.front()->chunks)) {
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
      {header.request, Buffer(static_cast<char*>(found->second.memory) + header.displacement,
                              header.total)});
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

// -- the thread

void Engine::look_at_stream_waits() {
  for (auto& wait : stream_waits_) {
    if (static_cast<i32>(memory::load_acquire(wait.begun) - wait.number) < 0) {
      wait.deadline.renew();
      continue;
    }
    auto const& request = *requests_.at(wait.request);
    if (!wait.deadline.ends(progress_of(request)) || watched_by_debugger(wait.deadline)) continue;
    return fail(late("wait of a stream", request, wait.deadline));  // empties the list
  }
}

void Engine::look_for_losses() {
  if (!options_.lost) return;
  for (auto const& [process, peer] : at_) {
    bool const needed = !peer.outgoing.empty() || !peer.in_flight.empty() ||
                        !peer.receives.empty() || peer.gets != 0;
    if (!needed) continue;
    if (auto lost = options_.lost(process)) return fail(std::move(*lost));
  }
}

void Engine::run() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds each{10};
  Pauses pauses;
  for (auto last = Clock::now(); !ends_; pauses.rest()) {
    if (progress()) pauses = {};
    if (Clock::now() - last < each) continue;
    last = Clock::now();
    Lock const lock(mutex_);
    if (failure_) continue;
    look_at_stream_waits();
    look_for_losses();
  }
}

}  // namespace meshpost::compat::mp
