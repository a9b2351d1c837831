#include "rma/via/proxy/proxy.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/host_places.hpp"
#include "base/patience.hpp"
#include "meshpost/device/block.hpp"
#include "world/join_engine.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

constexpr u64 most_held = u64{32} << 20;  // then ranks wait until something has been sent

}  // namespace

Proxy::Proxy(Peers const& peers, Layout const& layout, Heap const& heap, Places const& places,
             std::string const& engine)
    : peers_(peers),
      layout_(layout),
      heap_(heap),
      places_(places),
      staging_(layout, peers.count()),
      remote_heap_(peers, layout, heap),
      peers_of_net_(peers.count()) {
  if (layout.apart) {
    channel_.emplace(
        join_engine(peers, "World", engine,
                    std::ranges::all_of(layout.devices, &Device::in_host_memory)
                        ? net::Gpus::no
                        : net::Gpus::if_faster,
                    [&](u32 process) { return peers.far(process) || layout.far_from(process); }),
        peers.count());
    channel_->serve(Parcel::message_kind, *this);
  }
  if (layout.apart) peers.together("World", [this] { make_own(); });
  else make_own();
  if (!channel_) return;
  engine_reaches_devices_ = std::ranges::any_of(layout.devices, [&](auto const& device) {
    return !device->in_host_memory() && channel_->engine().reaches(device->kind());
  });
  expose_sources();
  staging_.join(channel_->engine(), peers);
}

void Proxy::make_own() {
  auto const& layout = layout_;
  shares_cores_ = layout.devices.empty();  // then with other processes' ranks
  for (u32 number = 0; number < layout.own_count(); ++number) {
    auto const& device = layout.devices[number];
    std::vector<u8> far(layout.device_count());
    for (u32 other = 0; other < far.size(); ++other) far[other] = layout.far(number, other) ? 1 : 0;
    Own own;
    own.records =
        device->allocate(Bytes{PostRing::capacity * sizeof(PostRecord)}, MemoryKind::pinned);
    own.words = device->allocate(Bytes{256}, MemoryKind::device);
    own.tail = device->allocate(Bytes{256}, MemoryKind::pinned);
    own.done = device->allocate(Bytes{layout.ranks_per_device * sizeof(u32)}, MemoryKind::pinned);
    own.far = device->allocate(Bytes{far.size()}, MemoryKind::device);
    device->write(own.far.data(), far.data(), Bytes{far.size()});
    if (!device->in_host_memory())
      own.stages = device->allocate(Bytes{layout.ranks_per_device * PostRing::stage_bytes},
                                    MemoryKind::device);
    own.access = make_access(*device);
    shares_cores_ |= device->in_host_memory();
    own_.push_back(std::move(own));
  }
}

// Some engines write only from memory that they know, and would have to learn it for each write.
void Proxy::expose_sources() {
  for (auto const& own : own_)
    if (auto const memory = own.access->pinned(); !memory.empty()) try {
        channel_->engine().expose(memory.data(), Bytes{memory.size()});
      } catch (Error const&) {
        return;  // it will be told each time
      }
}

PostRing Proxy::ring(u32 own_device) const {
  auto const& own = own_[own_device];
  return {own.records.as<PostRecord>(), own.head(),       own.tail.as<u32>(),   own.seen(),
          own.done.as<u32>(),           own.far.as<u8>(), own.stages.as<char>()};
}

// The thread goes on, alone: what ranks have asked for is on its way, or soon will be. What it
// needs of devices of this process they do, or say that they are broken.
std::optional<Error> Proxy::await_sent(std::string const& operation) {
  Patience patience(channel_ ? peers_.processes().job().silence : std::chrono::milliseconds(0));
  for (wake(); !is_empty(); sched_yield()) {
    if (failure() || (channel_ && peers_.processes().lost())) break;
    if (patience.ends(moved()))
      return Error(Kind::peer_lost, operation,
                   fmt::format("what its ranks have sent is stuck in {} for {}",
                               channel_->engine().name(), patience.text()),
                   "see what became of the network; start the job again");
  }
  return std::nullopt;
}

void Proxy::settle(std::string const& operation) {
  try {
    settle_all(operation);
  } catch (Error const& error) {
    fail(error);  // what is still under way could reach the next run's windows: there is none
    throw;
  }
  settled_ = true;
}

void Proxy::settle_all(std::string const& operation) {
  auto const unsent = await_sent(operation);
  if (!channel_) {
    if (auto const error = failure()) throw *error;
    return;
  }
  wire::Packer mine;
  for (u32 process = 0; process < peers_.count(); ++process) mine.value(traffic(process).sent);
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

void Proxy::await_parcels(u32 process, u64 sent, std::string const& operation) {
  for (Patience patience(peers_.processes().job().silence);; sched_yield()) {
    u64 const come = traffic(process).received;
    if (come >= sent) return;
    if (auto const error = failure()) throw *error;
    if (auto const loss = peers_.processes().lost())
      throw peers_.processes().lost_error(operation, *loss);
    if (patience.ends(moved()))
      throw Error(Kind::peer_lost, operation,
                  fmt::format("{} has sent {} parcels, {} have come, and none for {}",
                              peers_.processes().name(process), sent, come, patience.text()),
                  "see what became of the network; start the job again");
  }
}

// A rank that waits has written what it asked for before it said so.
bool Proxy::is_empty() const {
  if (!idle_.load()) return false;
  return std::ranges::all_of(own_,
                             [](Own const& own) {
                               u32 const tail = memory::load_acquire(own.tail.as<u32>());
                               auto& next = own.records.as<PostRecord>()[tail % PostRing::capacity];
                               return memory::load_acquire(&next.alone.ready) != tail + 1;
                             }) &&
         idle_.load();  // still: what was taken meanwhile has left its ring, and is under way
}

std::optional<u64> Proxy::quiet() const {
  u64 const before = activity_.load();
  if (!is_empty()) return std::nullopt;
  if (std::ranges::any_of(own_, [](Own const& own) { return own.access->unopened(); }))
    return std::nullopt;
  if (!idle_.load() || activity_.load() != before) return std::nullopt;
  return before;
}

// What it holds up, abandon() drops: bytes that are not read any more are never sent, nor is
// anything behind them.
void Proxy::withdraw() {
  std::scoped_lock const lock(of_ranks_);
  withdrawn_ = true;
}

std::optional<Error> Proxy::failure() const {
  std::scoped_lock const lock(mutex_);
  return failure_;
}

void Proxy::fail(Error error) {
  std::scoped_lock const lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

// -- the thread

void Proxy::begin_work() {
  idle_.store(false);
  activity_.fetch_add(1);
}

bool Proxy::nothing_left() const {
  return gets_.empty() && (!channel_ || channel_->reads_nothing()) &&
         std::ranges::all_of(peers_of_net_, [](Peer const& peer) { return peer.queue.empty(); }) &&
         std::ranges::none_of(own_, [](Own const& own) { return own.access->busy(); });
}

bool Proxy::get_on() {
  bool any = false;
  for (u32 own = 0; own < own_.size() && !over_; ++own) {
    if (held_ < most_held) any |= empty_ring(own);
    any |= own_[own].access->poll();
  }
  any |= carry_out_queued();
  if (channel_) any |= send_queued();
  if (any) moved_.fetch_add(1, std::memory_order_relaxed);
  if (!channel_) return any;
  any |= channel_->poll();
  any |= tell_news(!any);
  return any;
}

bool Proxy::drive(bool helping) {
  std::unique_lock const alone(driving_, std::try_to_lock);
  if (!alone || !awake_.load()) return false;
  if (helping) helps_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (get_on()) return true;
  } catch (Error const& error) {  // a device's: the run ends by it
    fail(error);
  }
  if (nothing_left()) idle_.store(true);
  return false;
}

bool Proxy::help() { return drive(true); }

bool Proxy::deliver(u32 own_device, Delivery const& count) {
  auto const alone = this->alone();
  if (!awake_.load()) return false;
  begin_work();
  own_[own_device].access->deliver(count);
  return true;
}

bool Proxy::empty_ring(u32 index) {
  hooks::at("empty a ring");
  auto& own = own_[index];
  bool any = false;
  for (;;) {
    auto& record = own.records.as<PostRecord>()[own.taken % PostRing::capacity];
    if (memory::load_acquire(&record.alone.ready) != own.taken + 1 || held_ >= most_held)
      return any;
    if (!any) begin_work();
    any = true;
    take(index, record);
    ++own.taken;
    memory::store(own.tail.as<u32>(), own.taken, Order::system);
  }
}

}  // namespace meshpost::detail
