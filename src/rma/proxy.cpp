#include "rma/proxy.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>

#include "meshpost/device/block.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

constexpr u64 largest_payload = u64{256} << 10;  // others get their turn in between
constexpr u64 short_payload = 512;               // goes along with the header, which engines copy
constexpr u64 most_held = u64{32} << 20;         // then ranks wait until something has been sent

// Ends when nothing has changed for long; 0: never.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds length) : length_(length) {}
  bool ends(u64 progress) {
    if (std::exchange(before_, progress) != progress) since_ = Clock::now();
    return length_.count() != 0 && Clock::now() - since_ > length_;
  }
  std::string text() const {
    return fmt::format("{:.3g} s", static_cast<double>(length_.count()) * 1e-3);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds length_;
  u64 before_ = 0;
  Clock::time_point since_ = Clock::now();
};

std::span<char const> bytes_of(Parcel const& parcel) {
  return {reinterpret_cast<char const*>(&parcel), sizeof parcel};
}

template <class Word>
void store_as(void* target, u64 value) {
  memory::store(static_cast<Word*>(target), static_cast<Word>(value), Order::system);
}

void store_word(void* target, Parcel const& parcel) {
  switch (parcel.bytes) {
    case 1: return store_as<u8>(target, parcel.value);
    case 2: return store_as<unsigned short>(target, parcel.value);
    case 4: return store_as<u32>(target, parcel.value);
    default: return store_as<u64>(target, parcel.value);
  }
}

}  // namespace

Proxy::Proxy(Peers const& peers, Layout const& layout, Heap const& heap, std::string const& engine)
    : peers_(peers),
      layout_(layout),
      heap_(heap),
      far_(layout.device_count()),
      peers_of_net_(peers.count()) {
  std::string address;
  peers.together("World", [&] {
    engine_ = net::make_engine(engine, peers.processes().own_address());
    address = engine_->address();
  });
  auto addresses = peers.exchange("World", address);
  for (u32 process = 0; process < peers.count(); ++process)
    if (!peers.far(process)) addresses[process].clear();
  peers.together("World", [&] { engine_->connect(addresses); });
  for (u32 device = 0; device < layout.device_count(); ++device)
    far_[device] = peers.far(layout.processes[device]) ? 1 : 0;
  for (auto const& device : layout.devices) {
    Ring ring;
    ring.records =
        device->allocate(Bytes{PostRing::capacity * sizeof(PostRecord)}, MemoryKind::pinned);
    ring.head = device->allocate(Bytes{256}, MemoryKind::device);
    ring.tail = device->allocate(Bytes{256}, MemoryKind::pinned);
    ring.done = device->allocate(Bytes{layout.ranks_per_device * sizeof(u32)}, MemoryKind::pinned);
    rings_.push_back(std::move(ring));
  }
}

Proxy::~Proxy() { stop(); }

PostRing Proxy::ring(u32 own_device) const {
  auto const& ring = rings_[own_device];
  return {ring.records.as<PostRecord>(), ring.head.as<u32>(), ring.tail.as<u32>(),
          ring.done.as<u32>(), far_.data()};
}

void Proxy::start(u32 run) {
  run_ = run;
  for (u32 own = 0; own < rings_.size(); ++own) {
    auto& ring = rings_[own];
    ring.taken = 0;
    std::memset(ring.records.data(), 0, ring.records.size());
    std::memset(ring.tail.data(), 0, ring.tail.size());
    std::memset(ring.done.data(), 0, ring.done.size());
    layout_.devices[own]->fill(ring.head.data(), 0, ring.head.size());
  }
  stopping_ = false;
  thread_ = std::thread([this] { work(); });
}

void Proxy::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  thread_.join();
  gets_.clear();
}

void Proxy::settle(std::string const& operation) {
  // The thread goes on: what ranks have asked for is on its way, or soon will be.
  std::optional<Error> unsent;
  for (Patience patience(peers_.processes().job().silence); !quiet() && !unsent; sched_yield()) {
    if (failure() || peers_.processes().lost()) break;
    if (patience.ends(sent() + received()))
      unsent.emplace(Kind::peer_lost, operation,
                     fmt::format("what its ranks have sent is stuck in {} for {}", engine_->name(),
                                 patience.text()),
                     "see what became of the network; start the job again");
  }
  wire::Packer mine;
  for (auto const& peer : peers_of_net_) mine.value(peer.sent.load());
  auto const all = peers_.exchange(operation, mine.take());
  if (unsent) throw *unsent;
  if (auto const error = failure()) throw *error;  // what was not sent is not counted
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    u64 for_me = 0;
    for (u32 i = 0; i <= peers_.number(); ++i) for_me = unpacker.value<u64>();
    await_parcels(process, for_me, operation);
  }
}

void Proxy::await_parcels(u32 process, u64 sent, std::string const& operation) const {
  for (Patience patience(peers_.processes().job().silence);; sched_yield()) {
    u64 const come = peers_of_net_[process].received.load(std::memory_order_acquire);
    if (come >= sent) return;
    if (auto const error = failure()) throw *error;
    if (auto const loss = peers_.processes().lost())
      throw peers_.processes().lost_error(operation, *loss);
    if (patience.ends(come))
      throw Error(Kind::peer_lost, operation,
                  fmt::format("{} has sent {} parcels, {} have come, and none for {}",
                              peers_.processes().name(process), sent, come, patience.text()),
                  "see what became of the network; start the job again");
  }
}

std::optional<u64> Proxy::quiet() const {
  u64 const before = activity_.load();
  if (!idle_.load()) return std::nullopt;
  for (auto const& ring : rings_)
    if (memory::load_acquire(ring.head.as<u32>()) != memory::load_acquire(ring.tail.as<u32>()))
      return std::nullopt;
  if (!idle_.load() || activity_.load() != before) return std::nullopt;
  return before;
}

std::optional<Error> Proxy::failure() const {
  std::scoped_lock const lock(mutex_);
  return failure_;
}

// -- the thread

void Proxy::begin_work() {
  idle_.store(false);
  activity_.fetch_add(1);
}

void Proxy::work() {
  for (u32 rests = 0; !stopping_.load();) {
    bool any = false;
    for (u32 own = 0; own < rings_.size() && held_ < most_held; ++own) any |= empty_ring(own);
    any |= send_queued();
    any |= engine_->poll(*this);
    bool const nothing_left =
        gets_.empty() &&
        std::ranges::all_of(peers_of_net_, [](Peer const& peer) { return peer.queue.empty(); });
    if (any) {
      rests = 0;
      continue;
    }
    if (nothing_left) idle_.store(true);
    ++rests;
    if (rests < 4000) {  // at once: the ranks may share this core
      sched_yield();
    } else {
      timespec const nap{0, 50'000};
      nanosleep(&nap, nullptr);
    }
  }
}

bool Proxy::empty_ring(u32 own) {
  auto& ring = rings_[own];
  bool any = false;
  for (;;) {
    auto& record = ring.records.as<PostRecord>()[ring.taken % PostRing::capacity];
    if (memory::load_acquire(&record.ready) != ring.taken + 1 || held_ >= most_held) return any;
    if (!any) begin_work();
    any = true;
    take(ring, record);
    ++ring.taken;
    memory::store(ring.tail.as<u32>(), ring.taken, Order::system);
  }
}

Proxy::Place Proxy::place_of(void const* address) const {
  u64 const distance = static_cast<u64>(static_cast<char const*>(address) - heap_.base());
  return {static_cast<u32>(distance / heap_.stride()), distance % heap_.stride()};
}

void Proxy::take(Ring& ring, PostRecord const& record) {
  auto const& post = record.post;
  Parcel parcel;
  parcel.run = run_;
  parcel.sender = post.rank + 1;
  parcel.bytes = post.bytes;
  parcel.value = post.value;
  u32* const done = post.waits ? ring.done.as<u32>() + post.local_rank : nullptr;
  // A notification alone has no target, only a counter.
  auto const place = place_of(post.kind == Post::Kind::get ? post.source
                              : post.target                ? post.target
                                                           : post.counter);
  u32 const process = layout_.processes[place.device];
  parcel.device = place.device;
  parcel.offset = place.offset;
  switch (post.kind) {
    case Post::Kind::add: parcel.kind = Parcel::Kind::add; break;
    case Post::Kind::store: parcel.kind = Parcel::Kind::store; break;
    case Post::Kind::get:
      parcel.kind = Parcel::Kind::get;
      parcel.request = ++next_get_;
      if (post.bytes == 0) {
        memory::add(done, 1, Order::system);
        return;
      }
      gets_[parcel.request] = {done, static_cast<char*>(post.target), post.bytes, post.bytes};
      break;
    case Post::Kind::put:
      if (post.counter) {
        parcel.counter = place_of(post.counter).offset;
        parcel.sender_word = place_of(post.sender).offset;
      }
      queue_in_pieces(process, parcel,
                      post.waits ? static_cast<char const*>(post.source) : record.data, post.bytes);
      if (done) memory::add(done, 1, Order::system);
      return;
  }
  queue(process, parcel);
}

// The counter is raised with the last piece.
void Proxy::queue_in_pieces(u32 process, Parcel parcel, char const* source, u64 bytes) {
  u64 const most = std::min(largest_payload, engine_->most() - sizeof(Parcel));
  auto const [counter, offset, position] =
      std::tuple(parcel.counter, parcel.offset, parcel.position);
  u64 at = 0;
  do {
    u64 const size = std::min(most, bytes - at);
    parcel.offset = offset + at;
    parcel.position = position + at;
    parcel.bytes = size;
    parcel.counter = at + size == bytes ? counter : 0;
    queue(process, parcel, {source + at, size});
    at += size;
  } while (at < bytes);
}

void Proxy::queue(u32 process, Parcel parcel, std::string_view payload) {
  auto& peer = peers_of_net_[process];
  parcel.sequence = peer.next_out++;
  parcel.check = check_of(parcel, payload);
  Outgoing out;
  auto const header = bytes_of(parcel);
  out.header.assign(header.data(), header.size());
  (payload.size() <= short_payload ? out.header : out.payload) += payload;
  held_ += out.header.size() + out.payload.size();
  peer.queue.push_back(std::move(out));
}

bool Proxy::send_queued() {
  bool any = false;
  for (u32 process = 0; process < peers_of_net_.size(); ++process) {
    auto& peer = peers_of_net_[process];
    while (!peer.queue.empty() && !peer.lost) {
      auto& out = peer.queue.front();
      u64 const cookie = out.payload.empty() ? 0 : ++next_cookie_;
      // Counted before: whoever sees that it has arrived must not find that it was never sent.
      peer.sent.fetch_add(1);
      sent_in_all_.fetch_add(1);
      if (!engine_->send(process, out.header, out.payload, cookie)) {
        peer.sent.fetch_sub(1);
        sent_in_all_.fetch_sub(1);
        break;
      }
      held_ -= out.header.size();
      // A string of this length keeps its bytes where they are when it is moved.
      if (cookie != 0) in_flight_[cookie] = std::move(out.payload);
      peer.queue.pop_front();
      any = true;
    }
  }
  return any;
}

// -- what comes

void Proxy::on_message(u32 process, std::span<char const> bytes) {
  begin_work();
  auto& peer = peers_of_net_[process];
  if (peer.lost) return;
  try {
    auto const come = read_parcel({bytes.data(), bytes.size()});
    // The network keeps no order: it waits for its turn.
    if (u32 const ahead = come.parcel.sequence - peer.next_in; ahead != 0) {
      bool const fresh =
          ahead < ~u32{0} / 2 &&
          peer.early.emplace(come.parcel.sequence, std::string(bytes.data(), bytes.size())).second;
      return fresh ? void() : on_lost(process, "a parcel came twice");
    }
    apply(process, come);
    for (auto next = peer.early.find(peer.next_in); next != peer.early.end();
         next = peer.early.find(peer.next_in)) {
      auto const kept = std::move(next->second);
      peer.early.erase(next);
      apply(process, read_parcel(kept));
    }
  } catch (Error const& error) {
    on_lost(process, error.cause());
  }
}

void Proxy::apply(u32 from, Delivery const& come) {
  auto& peer = peers_of_net_[from];
  ++peer.next_in;
  if (come.parcel.run == run_) carry_out(from, come.parcel, come.payload);
  peer.received.fetch_add(1, std::memory_order_release);
  received_in_all_.fetch_add(1, std::memory_order_release);
}

// Nothing is written to where this process has no heap.
char* Proxy::own_memory(Parcel const& parcel, u64 bytes) const {
  bool const inside = layout_.owns(parcel.device) && parcel.offset <= heap_.size() &&
                      bytes <= heap_.size() - parcel.offset;
  if (!inside)
    throw Error(Kind::peer_lost, "receive a parcel",
                fmt::format("it sent {} bytes for offset {} of device {}, where nothing is", bytes,
                            parcel.offset, parcel.device),
                "start the job again; if it happens again, report it");
  return heap_.at(parcel.device, parcel.offset);
}

void Proxy::carry_out(u32 from, Parcel const& parcel, std::string_view payload) {
  switch (parcel.kind) {
    case Parcel::Kind::put: {
      if (!payload.empty())
        std::memcpy(own_memory(parcel, payload.size()), payload.data(), payload.size());
      if (parcel.counter == 0) return;
      Parcel word = parcel;
      word.offset = parcel.sender_word;
      memory::store_relaxed(reinterpret_cast<u32*>(own_memory(word, sizeof(u32))), parcel.sender);
      word.offset = parcel.counter;
      // Releases the bytes above to whoever acquires the count.
      memory::add(reinterpret_cast<u32*>(own_memory(word, sizeof(u32))), 1, Order::system);
      return;
    }
    case Parcel::Kind::add:
      memory::add(reinterpret_cast<u32*>(own_memory(parcel, sizeof(u32))),
                  static_cast<u32>(parcel.value), Order::system);
      return;
    case Parcel::Kind::store: return store_word(own_memory(parcel, parcel.bytes), parcel);
    case Parcel::Kind::get: return answer_get(from, parcel);
    case Parcel::Kind::answer: return take_answer(parcel, payload);
    case Parcel::Kind::count: return;  // read_parcel() has refused it
  }
}

void Proxy::answer_get(u32 from, Parcel const& parcel) {
  Parcel answer;
  answer.run = run_;
  answer.kind = Parcel::Kind::answer;
  answer.request = parcel.request;
  queue_in_pieces(from, answer, own_memory(parcel, parcel.bytes), parcel.bytes);
}

void Proxy::take_answer(Parcel const& parcel, std::string_view payload) {
  auto const found = gets_.find(parcel.request);
  if (found == gets_.end()) return;  // of a rank that was ended
  auto& get = found->second;
  if (parcel.position > get.size || payload.size() > get.size - parcel.position) return;
  std::memcpy(get.target + parcel.position, payload.data(), payload.size());
  get.left -= std::min<u64>(get.left, payload.size());
  if (get.left != 0) return;
  memory::add(get.done, 1, Order::system);
  gets_.erase(found);
}

void Proxy::on_done(u64 cookie) {
  auto const sent = in_flight_.extract(cookie);
  if (!sent.empty()) held_ -= sent.mapped().size();
}

void Proxy::on_data(u32 /*peer*/, u32 /*data*/) {}  // puts go as messages

void Proxy::on_lost(u32 process, std::string const& why) {
  auto& peer = peers_of_net_[process];
  peer.lost = true;
  peer.early.clear();
  for (auto const& out : peer.queue) held_ -= out.header.size() + out.payload.size();
  peer.queue.clear();
  std::scoped_lock const lock(mutex_);
  if (!failure_)
    failure_.emplace(Kind::peer_lost, "send to another process",
                     fmt::format("{} is out of reach of {}: {}", peers_.processes().name(process),
                                 engine_->name(), why),
                     "see its own messages and the network's, and start the job again");
}

}  // namespace meshpost::detail
