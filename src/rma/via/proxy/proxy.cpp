#include "rma/via/proxy/proxy.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "base/host_hooks.hpp"
#include "meshpost/device/block.hpp"
#include "meshpost/rma/window.hpp"
#include "world/join_engine.hpp"

namespace meshpost::detail {

Proxy::Proxy(WorldMemory const& memory, std::string const& engine)
    : WorldMemory(memory),
      driver_(memory.group_, {[this] { return get_on(); }, [this] { return nothing_left(); }}),
      own_(memory.layout_),
      outbound_(memory, own_, driver_),
      inbound_(memory, own_, outbound_) {
  auto const in_host_memory = std::ranges::count_if(layout_.devices, &Device::in_host_memory);
  if (layout_.far_processes) {
    bool const no_gpus = in_host_memory == static_cast<std::ptrdiff_t>(layout_.devices.size());
    channel_.emplace(
        join_engine(group_, "World", engine, no_gpus ? net::Gpus::no : net::Gpus::if_faster,
                    [&](u32 process) { return group_.far(process) || layout_.far_from(process); }),
        group_.count(), net::Losing{.timeout = group_.processes().job().silence});
    channel_->serve(WireMessage::message_kind, *this);
    group_.together("World", [this] { own_.make(); });
  } else {
    own_.make();
  }
  // If this process has no devices, its thread shares cores with other processes' ranks.
  driver_.know(channel_ ? &*channel_ : nullptr, layout_.devices.empty() || in_host_memory != 0);
  if (channel_) outbound_.connect(*channel_);
}

// Copies of a run whose end threw may be in flight, out of and into pinned memory of outbound_.
Proxy::~Proxy() {
  driver_.end_thread();
  own_.drop();
}

void Proxy::start(u32 run) {
  drained_ = false;
  own_.begin_run();
  outbound_.begin_run(run);
  driver_.start();
}

void Proxy::stop() {
  if (!driver_.stop()) return;
  inbound_.forget_all();
  // Of a run that failed: messages whose bytes are not read any more would block all behind them.
  outbound_.forget_all();
  own_.end_run(std::exchange(drained_, false));
}

// A rank that waits has written its requests before it said that it waits.
bool Proxy::is_empty() const {
  return driver_.idle() && own_.rings_are_empty() &&
         driver_.idle();  // still: requests taken meanwhile have left their ring, and are in flight
}

std::optional<u64> Proxy::quiet() const {
  u64 const before = driver_.activity();
  if (!is_empty()) return std::nullopt;
  if (!own_.all([](Access const& access) { return !access.has_pending_commands(); }))
    return std::nullopt;
  if (!driver_.idle() || driver_.activity() != before) return std::nullopt;
  return before;
}

bool Proxy::nothing_left() const {
  return inbound_.awaits_nothing() && (!channel_ || channel_->reads_nothing()) &&
         outbound_.is_empty() && own_.all([](Access const& access) { return !access.busy(); });
}

bool Proxy::get_on() {
  bool any = false;
  for (u32 own = 0; own < own_.count() && !outbound_.is_over(); ++own) {
    any |= empty_ring(own);
    any |= own_.access(own).poll();
  }
  any |= carry_out_queued();
  if (channel_) any |= outbound_.send();
  if (any) driver_.has_moved();
  if (!channel_) return any;
  any |= channel_->poll();
  any |= outbound_.tell_news(!any);
  return any;
}

bool Proxy::raise(u32 own_device, via::Signal const& count) {
  auto const alone = driver_.alone();
  if (!driver_.awake()) return false;
  driver_.begin_work();
  own_.access(own_device).deliver({{.signal = count}});
  return true;
}

bool Proxy::empty_ring(u32 own) {
  if (outbound_.is_full()) return false;
  hooks::at("empty a ring");
  bool any = false;
  for (; !outbound_.is_full(); any = true) {
    RequestRecord const* const record = own_.next(own);
    if (!record) break;
    if (!any) driver_.begin_work();
    try {
      take(own, *record);
    } catch (...) {
      own_.pass(own);  // the run fails; the request must not be carried out again
      throw;
    }
    own_.pass(own);
  }
  return any;
}

// Converts a rank's addresses to global ones.
void Proxy::take(u32 own, RequestRecord const& record) {
  bool const has_more = record.message.signal.has_more();
  WireMessage wire;
  auto& message = wire.message;
  if (has_more) message = record.message;
  else message.signal = record.message.signal;
  u32* const done = has_more && record.waits != 0 ? own_.done(own, record.local_rank) : nullptr;
  u64 const word = message.own;  // of a store
  auto const at_own = reinterpret_cast<char*>(word);
  // A count alone has no other place.
  auto const address_of = [&](u64 address) {
    return addresses_.of(own, reinterpret_cast<void const*>(address));
  };
  if (message.address == 0 && !message.signal.any()) return;  // it changes nothing
  auto const address = address_of(message.address != 0 ? message.address : message.signal.at());
  u32 const process = layout_.processes[address.device];
  message.device = address.device;
  message.address = address.offset;
  auto const count = message.signal;
  message.signal = count.any() ? count.moved_to(address_of(count.at()).offset) : via::Signal{};
  message.own = 0;
  if (message.type == via::Message::Type::put && done)
    return outbound_.put_long(own, process, wire, at_own, done);
  if (message.type == via::Message::Type::get) {
    if (message.bytes == 0) return memory::add(done, 1, Order::system);
    wire.request = inbound_.await({own, done, at_own, message.bytes, message.bytes});
    if (auto const target = addresses_.in_heap(own, at_own, message.bytes);
        target && layout_.devices[own]->in_host_memory()) {
      wire.own_device = target->device;
      message.own = target->offset;
    }
    return outbound_.put(process, wire);
  }
  bool const stores = message.type == via::Message::Type::store;
  std::string_view const bytes(
      stores ? reinterpret_cast<char const*>(&word) : own_.bytes_of_next(own), message.bytes);
  // At once, if no message for this process waits before it.
  if (process == group_.number() && outbound_.is_empty(process))
    return inbound_.carry_out(process, wire, {bytes, nullptr});
  outbound_.put(process, wire, bytes);
}

// Order: requests for this process are carried out in the order in which they were taken from the
// rings of all own devices, at once or from a queue. Messages of another process are, too. So
// order, delivery and release hold as between processes. A rank that acquires a count has
// everything that was taken before it for that device (Access::deliver).
//
// A request whose bytes a copy engine still reads blocks those behind it, also those of other
// devices. It never waits for a rank. No rank is needed to read its bytes, nor to let go of memory
// that they pass through. Bytes for a device whose ranks carry out no commands are kept
// (CommandQueueAccess). So the queue always makes progress, and a rank that waits for room in its
// ring gets it.
bool Proxy::carry_out_queued() {
  bool any = false;
  for (OutgoingPtr out; (out = outbound_.take_for_here()); any = true) {  // a get adds its answer
    inbound_.carry_out(group_.number(), out->wire, {out->rest(), out->keep});
    outbound_.has_carried_out(*out);
  }
  return any;
}

void Proxy::on_message(u32 process, net::Channel::Message const& message) {
  auto const wire = read_message(message);
  // Also for messages that are not carried out: their slot is then free again at once.
  auto const payload = outbound_.writes()->take(process, wire, message.bytes);
  if (outbound_.is_of_this_run(wire.run)) inbound_.carry_out(process, wire, payload);
}

void Proxy::on_lost(u32 process, std::string const& why) {
  outbound_.lose(process);
  driver_.fail({Kind::peer_lost, "send to another process",
                fmt::format("{} is out of reach of {}: {}", group_.processes().name(process),
                            channel_->engine().name(), why),
                "see its own messages and the network's, and start the job again"});
}

}  // namespace meshpost::detail
