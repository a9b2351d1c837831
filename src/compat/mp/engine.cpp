#include "compat/mp/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/caught.hpp"
#include "base/pauses.hpp"
#include "base/thread.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {
namespace {

char const* remedy_for(Request const& request) {
  switch (request.what.kind) {
    case Task::send:
      return "see that the other process posts a receive for it, and one for each message before";
    case Task::receive:
      return "see that the other process sends as many messages as this one receives";
    case Task::put:
    case Task::get:
      return "see that the other process receives the messages that were sent to it before";
    case Task::watch:
    case Task::store: break;
  }
  return "see that somebody stores the word";
}

// Numbers of requests of earlier sessions are not used again: a program may still have them.
std::atomic<u64> used_numbers = 0;

}  // namespace

Engine::Engine(Channels channels, std::vector<u32> peers, std::shared_ptr<Device> words,
               Options options)
    : channels_(std::move(channels)),
      options_(std::move(options)),
      peers_(std::move(peers)),
      words_(std::move(words)),
      failed_(words_.take()),
      on_device_(words_.device().allocate(Bytes{sizeof(u32)}, MemoryKind::device)),
      first_(used_numbers + 1),
      next_(first_) {
  failed_.finish();
  words_.device().fill(on_device_.data(), 0, Bytes{sizeof(u32)});
  for (u32 const peer : peers_) at_[peer];
  if (options_.thread) thread_ = start_thread("carry out LibMP's requests", [this] { run(); });
}

Engine::~Engine() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  used_numbers = std::max<u64>(used_numbers, next_);
  if (failure_ && !told_) warn(failure_->what());
  std::size_t open = 0;
  for (auto const& [number, request] : requests_) {
    request->words.finish();  // streams that wait go on
    if (request->posted && !failure_ && open++ == 0)
      warn(fmt::format("mp_finalize: the {} was posted, and is not complete", request->text()));
  }
  if (open > 1) warn(fmt::format("mp_finalize: so are {} other requests", open - 1));
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
  told_ = true;
  throw Error(
      failure_->kind(), operation,
      fmt::format("an operation has failed: {}: {}", failure_->operation(), failure_->cause()),
      failure_->remedy());
}

void Engine::check(std::string const& operation) const {
  std::scoped_lock const lock(mutex_);
  throw_failure(operation);
}

u64 Engine::prepare(std::string const& operation, Task task) {
  Lock lock(mutex_);
  while (words_.empty()) {
    lock.unlock();
    auto block = words_.allocate();
    lock.lock();
    words_.add(std::move(block));
  }
  throw_failure(operation);
  auto request = std::make_unique<Request>();
  request->what = std::move(task);
  request->number = next_++;
  request->words = words_.take();
  u64 const number = request->number;
  requests_.emplace(number, std::move(request));
  return number;
}

// Null: it is complete.
Request* Engine::find(std::string const& operation, u64 request) const {
  if (request < first_ || request >= next_)
    throw Error(Kind::misuse, operation, "there was no such request since mp_init",
                "name a request that a call has given");
  auto const found = requests_.find(request);
  return found == requests_.end() ? nullptr : found->second.get();
}

Request& Engine::unposted(std::string const& operation, u64 request) {
  throw_failure(operation);
  auto* const found = find(operation, request);
  if (found && !found->posted) return *found;
  throw Error(Kind::misuse, operation, "the request was posted before",
              "post each prepared request once");
}

void Engine::check_unposted(std::string const& operation, u64 request) {
  Lock const lock(mutex_);
  unposted(operation, request);
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
  auto const words = post_later(operation, request, true);
  // Without the lock: it waits while the stream has no room.
  queue_on([&] { stream.store(words.rung, words.number); });
}

// The request is in order already. If it can never begin, those behind it can't either.
void Engine::queue_on(std::function<void()> const& work) {
  try {
    work();
  } catch (...) {
    Lock const lock(mutex_);
    fail(caught("use a stream"));
    throw;
  }
}

RequestWords Engine::post_later(std::string const& operation, u64 request, bool on_stream) {
  Lock const lock(mutex_);
  auto& posted = unposted(operation, request);
  posted.on_stream = on_stream;
  put_in_order(posted);
  return posted.words;
}

// Null: it is complete.
Request* Engine::awaited(std::string const& operation, u64 request) {
  auto* const found = find(operation, request);
  if (!found) return nullptr;
  throw_failure(operation);
  auto& one = *found;
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
  auto const kind = request.what.kind;
  if (kind == Task::watch) return memory::load_relaxed(request.what.awaited.word);
  if (kind == Task::store) return 0;
  return at_.at(request.what.peer).progress;
}

// The request that a stream or a kernel has not begun: this one, or one in front of it.
Request const* Engine::held_by(Request const& request) const {
  if (request.sent) return nullptr;
  auto const kind = request.what.kind;
  if (kind != Task::send && kind != Task::put && kind != Task::get)
    return request.on_stream && !request.words.has_rung() ? &request : nullptr;
  auto const& outgoing = at_.at(request.what.peer).outgoing;
  return outgoing.empty() || outgoing.front()->words.has_rung() ? nullptr : outgoing.front();
}

// True if a stream of this process has not come to the request, or to one before it. It may be busy
// with the program's kernels for any time; if it waits for a request, that wait has its own
// deadline. (So waits of streams don't ask this: two streams could wait for each other for ever.)
bool Engine::held_by_stream(Request const& request) const {
  auto const* const holds = held_by(request);
  return holds && holds->on_stream;
}

Error Engine::late(std::string const& operation, Request const& request,
                   Deadline const& deadline) const {
  auto const& what = request.what;
  bool const watches = what.kind == Task::watch;
  auto const so_far = watches
                          ? what.awaited.text()
                          : fmt::format("{} of {} bytes were moved", request.moved, what.size());
  auto const* const holds = held_by(request);
  auto const remedy = holds ? fmt::format("see that a {} begins the {}",
                                          holds->on_stream ? "stream" : "kernel", holds->text())
                            : std::string(remedy_for(request));
  return {
      Kind::deadline, operation,
      fmt::format("{}: {}, and nothing has come for {}", request.text(), so_far, deadline.text()),
      fmt::format("{}, or give a longer deadline (MESHPOST_DEADLINE)", remedy)};
}

void Engine::wait(std::string const& operation, u64 request) {
  Deadline deadline(options_.deadline);
  Pauses pauses;
  for (;; pauses.rest()) {
    Lock const lock(mutex_);
    if (carry_on(lock)) pauses.renew();
    auto const* const one = awaited(operation, request);
    if (!one) return;
    if (held_by_stream(*one)) deadline.renew();
    if (!deadline.ends(progress_of(*one)) || watched_by_debugger(deadline)) continue;
    fail(late(operation, *one, deadline));
    told_ = true;
    throw Error(*failure_);
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
  queue_on([&] {
    stream.store(begun, wait_number);
    stream.await_word(words.done, words.number);
  });
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
  struct Counted {  // look_for_losses() looks for it
    Engine& engine;
    explicit Counted(Engine& one) : engine(one) { change(1); }
    ~Counted() { change(~0u); }
    void change(u32 by) const {
      std::scoped_lock const lock(engine.mutex_);
      engine.word_waits_ += by;
    }
  } const counted(*this);
  for (; !awaited.holds(); pauses.rest()) {
    Lock const lock(mutex_);
    throw_failure(operation);
    carry_on(lock);
    if (!deadline.ends(progress_of(request)) || watched_by_debugger(deadline)) continue;
    throw late(operation, request, deadline);
  }
}

void Engine::flush(std::string const& operation) {
  Deadline deadline(options_.deadline);
  Pauses pauses;
  for (;; pauses.rest()) {
    Lock const lock(mutex_);
    if (failure_) return;
    if (carry_on(lock)) pauses.renew();
    Request const* open = nullptr;
    u64 progress = 0;
    for (auto const& [process, peer] : at_) {
      progress += peer.progress;
      for (auto const* const one : peer.in_flight) open = one;
      if (peer.gets != 0)
        for (auto const& [number, one] : requests_)
          if (one->what.kind == Task::get && one->sent && one->what.peer == process)
            open = one.get();
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

}  // namespace meshpost::compat::mp
