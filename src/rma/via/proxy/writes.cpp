// Long puts and answers that the engine writes straight from the sender's memory into the
// receiver's window, or, where it can't, into pinned memory beside it. Of a device that the engine
// reads itself also shorter ones: all that don't lie in the request.
//
// Such a piece is a parcel like others, with its counter, only that its bytes do not lie behind it:
// the channel writes them, and delivers the parcel when it is its turn and both have come
// (net::Channel). So a counter is raised after all that was sent before has been delivered.
//
// Only the bytes may come into the window before their turn. Nobody may look at or change them
// there (the contract: until their notification is consumed), but other parcels of this process: of
// one sent earlier, bytes for the same place must not come later. So a write begins only when all
// that this process has sent to those bytes is known to have been carried out (Undelivered). Each
// parcel tells how many of the other way have been; where none goes that way, one is sent for that
// alone. A piece over bytes of an earlier message that is under way goes as messages, which have
// their turn; one over bytes of an earlier write waits, as it would take longer in messages. It
// waits for nothing but the receiver's proxy, which tells what it has carried out whenever it finds
// nothing else to do. What is sent later than a write has its turn later, or waits likewise.
//
// The write is over before the World touches those windows again: at the end of a run that went
// well all parcels have been carried out, and after others all writes have landed
// (Proxy::come_to_rest()).
//
// Windows of GPUs, too, where the engine reaches their memory (net::Engine::reaches), in and out of
// it. What differs:
// - Order: that a parcel was carried out there does not say that its bytes are in the window: they
//   may be in a letter that no rank has opened, or in a copy that goes on. A write would come
//   before them. So each parcel tells, too, before which of the other way none can change a window
//   any more (`settled`). A piece over bytes of a parcel that is not known to be settled goes by
//   way of the receiver's pinned memory, or in messages, behind it in its turn, as it would without
//   such an engine. It doesn't wait: for letters a rank is needed. What comes behind a write, to
//   the same bytes, has its turn when that has landed, since the write's own parcel has its turn
//   before.
// - Visibility: in its turn the device is told to see what network cards have written to it
//   (Device::see_writes). The letter that raises the counter is released behind that, and a rank
//   that opens it acquires it: so it sees the bytes.
// - No host can compute a sum of bytes in a GPU. What is to be trusted there is the network card,
//   which checks packets from memory to memory (InfiniBand's invariant CRC has 32 bits); engines
//   that lack that reach no GPUs.
// - A source that the engine reads stays where it is as the host's heap does, and `done` is raised
//   when it was read. Where its bytes must go in messages after all, they are read by a copy engine
//   then (Outbound::read_instead).
//
// Memory of other GPUs no engine can write to. A piece for it goes into a slot of the receiver's
// pinned memory (Staging), and from there by one copy of a copy engine, while others are written.
// - Order: it is a parcel too. In its turn, when all before it have been carried out, its sum is
//   compared and its copy put into the device's stream, behind all copies of earlier parcels; the
//   letter that raises the counter becomes ready in that stream behind it (MailboxAccess). Nothing
//   comes into the window before its turn, so what is under way to the same bytes does not matter.
// - Reuse: the slot is let go of when the copy has been seen to be over, and only then is the
//   sender told. A write that begins after that overwrites nothing that is still to be read. Slots
//   of parcels that are not carried out, as their run has ended, are let go of at once; and of
//   writes that have begun each has its parcel (Proxy::abandon()), so both ends go on counting
//   alike.
// - Progress: who finds no slot waits, and all that is behind it to that process. All slots were
//   written then, so their parcels have been or will be carried out there, by the proxy. It hands
//   each to a copy engine at once; or if letters must go first for which there is no room, copies
//   the bytes out. So slots are let go of without any rank, and when half are, that is told at the
//   latest. Sources are read from devices into chunks that are let go of when the engine has read
//   them, which waits for slots alone: so a rank that puts waits for copy engines, the network and
//   two proxies, and never for the receiver's kernel.
// - Time: no less than the engine's, and reading the first piece and copying on the last (512 KiB
//   over PCIe at 50 GB/s: 10 us, and half as long to start it). What both hosts do besides, sums
//   above all (20 us each), is pipelined, but at the sender comes on top where its engine works
//   only when it is called.
#include "rma/via/proxy/writes.hpp"

#include <algorithm>

namespace meshpost::detail {
namespace {

constexpr u64 largest_parcel = u64{256} << 10;  // others get their turn in between
// Shorter ones would cost more in parcels, and longer ones in time: of one piece both ends compute
// the sum while others are under way.
constexpr u64 largest_write = u64{256} << 10;
constexpr u64 largest_unsummed = u64{1} << 20;  // others get their turn in between

}  // namespace

Writes::Writes(WorldMemory const& memory, OwnDevices const& own, net::Channel& channel)
    : WorldMemory(memory),
      own_(own),
      channel_(channel),
      staging_(memory.layout_, memory.peers_.count()),
      remote_heap_(memory.peers_, memory.layout_, memory.heap_),
      reaches_devices_(std::ranges::any_of(memory.layout_.devices,
                                           [&](auto const& device) {
                                             return !device->in_host_memory() &&
                                                    channel.engine().reaches(device->kind());
                                           })),
      peers_of_net_(memory.peers_.count()) {}

// Some engines write only from memory that they know, and would have to learn it for each write.
void Writes::join() {
  auto& engine = channel_.engine();
  for (u32 own = 0; own < own_.count(); ++own)
    if (auto const memory = own_.access(own).pinned(); !memory.empty()) try {
        engine.expose(memory.data(), Bytes{memory.size()});
      } catch (Error const&) {
        break;  // it will be told each time
      }
  staging_.join(engine, peers_);
}

void Writes::begin_run() {
  for (auto& peer : peers_of_net_) {
    peer.undelivered.clear();
    peer.unsettled.clear();
  }
}

u64 Writes::most_in_message() const {
  return std::min(largest_parcel, channel_.most(sizeof(Parcel)));
}

// Windows of CPU devices, also those of neighbours that are mapped here.
std::optional<Writes::Source> Writes::in_place(u32 own, char const* source, u64 bytes) const {
  auto const place = bytes != 0 ? places_.in_heap(own, source, bytes) : std::nullopt;
  if (!place) return std::nullopt;
  if (layout_.owns(place->device) &&
      remote_heap_.readable(place->device - layout_.first_device, place->offset) != 0)
    return Source{heap_.at(place->device, place->offset), place->device - layout_.first_device};
  if (bytes <= most_in_message() || !layout_.devices[own]->in_host_memory()) return std::nullopt;
  return Source{source, std::nullopt};
}

// How many of the next bytes the engine can read at once.
u64 Writes::readable(Outgoing const& out) const {
  if (!out.device) return ~u64{0};
  auto const* const memory = heap_.at(layout_.first_device + *out.device, 0);
  return remote_heap_.readable(*out.device, static_cast<u64>(out.source + out.sent - memory));
}

Writes::Way Writes::way_of(u32 process, Outgoing const& out) const {
  auto const& peer = peers_of_net_[process];
  auto const& message = out.parcel.message;
  u64 const left = std::min(out.size - out.sent, readable(out));
  bool const is_short = out.size - out.sent <= most_in_message();
  if ((is_short && !out.device) || left == 0) return {};
  auto const target = message.device == Parcel::nowhere
                          ? std::nullopt
                          : remote_heap_.find(message.device, message.place + out.sent);
  auto const beside = [&] { return is_short ? Way{} : way_to_slot(process, left); };
  if (!target) return beside();
  u64 const most = out.device || !target->in_host_memory ? largest_unsummed : largest_write;
  u64 const bytes = std::min({left, most, target->bytes});
  Undelivered::Range const range{message.device, message.place + out.sent, bytes};
  if (peer.unsettled.in(range) != Undelivered::By::nobody) return beside();
  auto const by = peer.undelivered.in(range);
  if (by == Undelivered::By::message && target->in_host_memory) return {};
  if (by == Undelivered::By::write || !channel_.may_write(process)) return {Way::By::later};
  return {Way::By::write, *target, bytes};
}

Writes::Way Writes::way_to_slot(u32 process, u64 left) const {
  if (!staging_.offered_by(process)) return {};
  auto const slot = staging_.next(process);
  if (!slot || !channel_.may_write(process)) return {Way::By::later};
  return {Way::By::write, *slot, std::min(left, slot->bytes), true};
}

bool Writes::begin(u32 process, OutgoingPtr const& out, Way const& way) {
  auto const bytes = out->rest().substr(0, way.bytes);
  if (!channel_.write(process, Parcel::message_kind, bytes, way.target.memory, way.target.offset,
                      out))
    return false;
  ++out->reading;
  bool const both_see_them = !out->device && (way.to_slot || way.target.in_host_memory);
  out->written = way.bytes;
  out->sum = both_see_them && !channel_.engine().keeps_bytes() ? sum_of(bytes) : 0;
  out->slot = way.to_slot ? std::optional(staging_.begin(process)) : std::nullopt;
  return true;
}

void Writes::has_sent(u32 process, u32 sequence, Parcel const& parcel) {
  auto const& message = parcel.message;
  auto const window =
      parcel.changes_windows() ? remote_heap_.find(message.device, message.place) : std::nullopt;
  if (!window) return;
  auto& peer = peers_of_net_[process];
  bool const in_place = parcel.written == Parcel::Written::to_window;
  Undelivered::Range const range{message.device, message.place, message.bytes};
  auto const by = in_place ? Undelivered::By::write : Undelivered::By::message;
  peer.undelivered.add(sequence, range, by);
  if (!in_place && !window->in_host_memory) peer.unsettled.add(sequence, range, by);
}

// Before which parcel from there all can change no window any more.
u32 Writes::settled(u32 process) {
  auto& peer = peers_of_net_[process];
  u32 const carried_out = channel_.carried_out(process);
  if (reaches_devices_ && peer.settled != carried_out &&
      own_.all([](Access const& access) { return access.settled(); }))
    peer.settled = carried_out;
  return peer.settled;
}

void Writes::tell(u32 process, Parcel& parcel) {
  parcel.settled = settled(process);
  parcel.freed = staging_.freed_for(process);
}

Payload Writes::take(u32 process, Parcel const& parcel, std::string_view bytes) {
  peers_of_net_[process].unsettled.delivered_before(parcel.settled);
  staging_.freed(process, parcel.freed);
  if (parcel.written != Parcel::Written::to_slot) return {bytes, nullptr};
  return staging_.take(process, parcel.slot, parcel.message.bytes);
}

}  // namespace meshpost::detail
