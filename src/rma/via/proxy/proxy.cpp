#include "rma/via/proxy/proxy.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "base/host_places.hpp"
#include "meshpost/device/block.hpp"
#include "meshpost/rma/window.hpp"
#include "world/join_engine.hpp"

namespace meshpost::detail {

Proxy::Proxy(WorldMemory const& memory, std::string const& engine)
    : WorldMemory(memory),
      driver_(memory.peers_, {[this] { return get_on(); }, [this] { return nothing_left(); }}),
      own_(memory.layout_),
      outbound_(memory, own_, driver_),
      inbound_(memory, own_, outbound_) {
  auto const in_host_memory = std::ranges::count_if(layout_.devices, &Device::in_host_memory);
  if (layout_.apart) {
    bool const no_gpus = in_host_memory == static_cast<std::ptrdiff_t>(layout_.devices.size());
    channel_.emplace(
        join_engine(peers_, "World", engine, no_gpus ? net::Gpus::no : net::Gpus::if_faster,
                    [&](u32 process) { return peers_.far(process) || layout_.far_from(process); }),
        peers_.count(), net::Losing{nullptr, peers_.processes().job().silence});
    channel_->serve(Parcel::message_kind, *this);
    peers_.together("World", [this] { own_.make(); });
  } else {
    own_.make();
  }
  // Where this process has no devices its thread shares cores with other processes' ranks.
  driver_.know(channel_ ? &*channel_ : nullptr, layout_.devices.empty() || in_host_memory != 0);
  if (channel_) outbound_.connect(*channel_);
}

// Copies of a run whose end threw may be under way, out of and into pinned memory of outbound_.
Proxy::~Proxy() {
  driver_.end_thread();
  own_.drop();
}

void Proxy::start(u32 run) {
  settled_ = false;
  own_.begin_run();
  outbound_.begin_run(run);
  driver_.start();
}

void Proxy::stop() {
  if (!driver_.stop()) return;
  inbound_.forget_all();
  // Of a run that came to nothing: what is read for it no more would hold up all behind it.
  outbound_.forget_all();
  own_.end_run(std::exchange(settled_, false));
}

// A rank that waits has written what it asked for before it said so.
bool Proxy::is_empty() const {
  return driver_.idle() && own_.rings_are_empty() &&
         driver_.idle();  // still: what was taken meanwhile has left its ring, and is under way
}

std::optional<u64> Proxy::quiet() const {
  u64 const before = driver_.activity();
  if (!is_empty()) return std::nullopt;
  if (!own_.all([](Access const& access) { return !access.unopened(); })) return std::nullopt;
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

bool Proxy::deliver(u32 own_device, Delivery const& count) {
  auto const alone = driver_.alone();
  if (!driver_.awake()) return false;
  driver_.begin_work();
  own_.access(own_device).deliver(count);
  return true;
}

bool Proxy::empty_ring(u32 own) {
  if (outbound_.is_full()) return false;
  hooks::at("empty a ring");
  bool any = false;
  for (PostRecord const* record = nullptr; !outbound_.is_full() && (record = own_.next(own));
       any = true) {
    if (!any) driver_.begin_work();
    take(own, *record);
    own_.pass(own);
  }
  return any;
}

void Proxy::take(u32 own, PostRecord const& record) {
  auto const& alone = record.alone;
  auto const post =
      alone.place == 0
          ? record.post
          : Post{.rank = alone.number, .counter = alone.counter(), .sender = alone.sender_word()};
  Parcel parcel;
  parcel.sender = WindowInfo::raiser(post.rank);
  parcel.bytes = post.bytes;
  parcel.value = post.value;
  u32* const done = post.waits ? own_.done(own, post.local_rank) : nullptr;
  // A notification alone has no target, only a counter.
  auto const place = places_.of(own, post.kind == Post::Kind::get ? post.source
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
      if (post.bytes == 0) {
        memory::add(done, 1, Order::system);
        return;
      }
      parcel.request =
          inbound_.await({own, done, static_cast<char*>(post.target), post.bytes, post.bytes});
      if (auto const target = places_.in_heap(own, post.target, post.bytes);
          target && layout_.devices[own]->in_host_memory()) {
        parcel.target_device = target->device;
        parcel.target = target->offset;
      }
      break;
    case Post::Kind::put:
      if (post.counter) {
        parcel.counter = places_.of(own, post.counter).offset;
        parcel.sender_word = places_.of(own, post.sender).offset;
      }
      if (post.waits)
        return outbound_.put_long(own, process, parcel, static_cast<char const*>(post.source),
                                  done);
      return outbound_.put(process, parcel, {record.data, post.bytes});
  }
  outbound_.put(process, parcel);
}

// Order: requests of all own devices wait in one queue, in the order in which they were taken from
// their rings, and are carried out in that order, as parcels of another process are. So order,
// delivery and release hold as between processes: whoever acquires a count has all that was taken
// before it for that device (Access::deliver).
//
// A request whose bytes a copy engine still reads holds up those behind it, also of other devices.
// It never waits for a rank: no rank is needed to read its bytes, nor to let go of memory that they
// pass through, and what comes to a device whose ranks open no letters is kept (MailboxAccess). So
// the queue always gets on, and a rank that waits for room in its ring gets it.
bool Proxy::carry_out_queued() {
  bool any = false;
  for (OutgoingPtr out; (out = outbound_.take_for_here()); any = true)  // a get adds its answer
    inbound_.carry_out(peers_.number(), out->parcel, {out->rest(), out->keep});
  return any;
}

void Proxy::on_message(u32 process, net::Channel::Message const& message) {
  auto const parcel = read_parcel(message);
  // Also where they are not carried out: then a slot is free again at once.
  auto const payload = outbound_.writes()->take(process, parcel, message.bytes);
  if (outbound_.is_of_this_run(parcel.run)) inbound_.carry_out(process, parcel, payload);
}

void Proxy::on_lost(u32 process, std::string const& why) {
  outbound_.lose(process);
  driver_.fail({Kind::peer_lost, "send to another process",
                fmt::format("{} is out of reach of {}: {}", peers_.processes().name(process),
                            channel_->engine().name(), why),
                "see its own messages and the network's, and start the job again"});
}

}  // namespace meshpost::detail
