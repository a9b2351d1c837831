// Long puts and answers that the engine writes straight from the sender's memory into the
// receiver's window. If it can't, it writes them into pinned memory beside the window. Of a device
// that the engine reads itself, shorter ones too: all that don't lie in the request.
//
// Such a piece is a message like others, with its counter, but its bytes do not lie behind it. The
// channel writes them. It delivers the message in its turn, when both have come (net::Channel). So
// a counter is raised after everything sent before has been delivered.
//
// Only the bytes may come into the window before their turn. Nobody may read or change them there
// (the contract: until their notification is consumed), except other messages of this process.
// Bytes of a message sent earlier must not come later to the same place. So a write begins only
// when everything that this process has sent to those bytes is known to be carried out
// (Undelivered). Each message tells how many of the other direction were carried out. If none goes
// in that direction, one is sent for that alone. A piece over bytes of an earlier message in flight
// goes as messages, which have their turn. A piece over bytes of an earlier write waits, because
// messages would take longer. It waits only for the receiver's proxy, which tells what it has
// carried out whenever it finds nothing else to do. A message sent later than a write has its turn
// later, or waits in the same way.
//
// The write is over before the World touches those windows again. At the end of a run that went
// well, all messages have been carried out. After other runs, all writes have landed
// (Proxy::quiesce()).
//
// The engine also writes into windows of GPUs, and reads from them, if it reaches their memory
// (net::Engine::reaches). The differences are:
// - Order: a message that was carried out there may not have its bytes in the window yet. They may
//   be in a command that no rank has carried out, or in a copy that is not finished. A write would
//   come before them. So each message also tells which messages of the other direction can change
//   no window any more: all before `completed`. A piece over bytes of a message that is not known
//   to be completed goes by way of the receiver's pinned memory, or in messages, behind that
//   message in its turn. It would go so without such an engine. It doesn't wait, because commands
//   need a rank. A message behind a write, to the same bytes, has its turn when the write has
//   landed, because the write's own message has its turn before.
// - Visibility: in the message's turn, the device is made to see what network cards have written to
//   it (Device::see_writes). The command that raises the counter is released behind that, and a
//   rank that carries it out acquires it. So the rank sees the bytes.
// - No host can compute a sum of bytes in a GPU. There the network card must be trusted. It checks
//   packets from memory to memory (InfiniBand's invariant CRC has 32 bits). Engines without such a
//   check reach no GPUs.
// - A source that the engine reads stays in place, as the host's heap does. `done` is raised when
//   it was read. If its bytes must go in messages after all, a copy engine reads them then
//   (Outbound::read_instead).
//
// No engine can write to memory of other GPUs. A piece for it goes into a slot of the receiver's
// pinned memory (Staging), and from there by one copy of a copy engine, while others are written.
// - Order: it is a message too. Its turn comes when all before it have been carried out. Then its
//   sum is compared, and its copy is put into the device's stream, behind all copies of earlier
//   messages. The command that raises the counter becomes ready in that stream behind it
//   (CommandQueueAccess). Nothing comes into the window before its turn, so other transfers in
//   flight to the same bytes do not matter.
// - Reuse: the slot is let go of when the copy has been seen to be over, and only then is the
//   sender told. A write that begins after that overwrites nothing that is still to be read. Slots
//   of messages that are not carried out, because their run has ended, are let go of at once. Each
//   write that has begun has its message (Proxy::abandon()), so both ends continue to count alike.
// - Progress: a sender that finds no slot waits, with everything behind it to that process. All
//   slots were written then, so the proxy there has carried out their messages, or will. It hands
//   each to a copy engine at once. If commands must go first and there is no room for them, it
//   copies the bytes out. So slots are let go of without any rank, and the sender is told at the
//   latest when half are. Sources are read from devices into chunks. These are let go of when the
//   engine has read them, which waits for slots alone. So a rank that puts waits for copy engines,
//   the network and two proxies, but never for the receiver's kernel. (If the source is in a
//   window, it waits when it flushes.)
// - Time: at least the engine's, plus reading the first piece and copying on the last (512 KiB over
//   PCIe at 50 GB/s: 10 us, and half as long to start it). The other work of both hosts, sums above
//   all (20 us each), is pipelined. But at the sender it is added if the engine works only when it
//   is called.
#include "rma/via/proxy/writes.hpp"

#include <algorithm>

namespace meshpost::detail {
namespace {

constexpr u64 largest_message = u64{256} << 10;  // others get their turn in between
// Shorter ones would cost more in messages, longer ones more time: both ends compute the sum of one
// piece while others are in flight.
constexpr u64 largest_write = u64{256} << 10;
constexpr u64 largest_unsummed = u64{1} << 20;  // others get their turn in between

}  // namespace

Writes::Writes(WorldMemory const& memory, OwnDevices const& own, net::Channel& channel)
    : WorldMemory(memory),
      own_(own),
      channel_(channel),
      staging_(memory.layout_, memory.group_.count()),
      remote_heap_(memory.group_, memory.layout_, memory.heap_),
      reaches_devices_(std::ranges::any_of(memory.layout_.devices,
                                           [&](auto const& device) {
                                             return !device->in_host_memory() &&
                                                    channel.engine().reaches(device->kind());
                                           })),
      peers_of_net_(memory.group_.count()) {}

// Some engines write only from memory that they know. Else they would have to learn it for each
// write.
void Writes::join() {
  auto& engine = channel_.engine();
  for (u32 own = 0; own < own_.count(); ++own)
    if (auto const memory = own_.access(own).pinned(); !memory.empty()) try {
        engine.expose(memory.data(), Bytes{memory.size()});
      } catch (Error const&) {
        break;  // the engine learns it for each write
      }
  staging_.join(engine, group_);
}

void Writes::begin_run() {
  for (auto& peer : peers_of_net_) {
    peer.undelivered.clear();
    peer.incomplete.clear();
  }
}

u64 Writes::most_in_message() const {
  return std::min(largest_message, channel_.most(sizeof(WireMessage)));
}

// Windows of CPU devices, also those of neighbours that are mapped here.
std::optional<Writes::Source> Writes::in_place(u32 own, char const* source, u64 bytes) const {
  auto const address = bytes != 0 ? addresses_.in_heap(own, source, bytes) : std::nullopt;
  if (!address) return std::nullopt;
  if (layout_.owns(address->device) &&
      remote_heap_.readable(address->device - layout_.first_device, address->offset) != 0)
    return Source{heap_.at(address->device, address->offset),
                  address->device - layout_.first_device};
  if (bytes <= most_in_message() || !layout_.devices[own]->in_host_memory()) return std::nullopt;
  return Source{source, std::nullopt};
}

// The number of next bytes that the engine can read at once.
u64 Writes::readable(Outgoing const& out) const {
  if (!out.device) return ~u64{0};
  auto const* const memory = heap_.at(layout_.first_device + *out.device, 0);
  return remote_heap_.readable(*out.device, static_cast<u64>(out.source + out.sent - memory));
}

Writes::Way Writes::way_of(u32 process, Outgoing const& out) const {
  auto const& peer = peers_of_net_[process];
  auto const& message = out.wire.message;
  u64 const left = std::min(out.size - out.sent, readable(out));
  bool const is_short = out.size - out.sent <= most_in_message();
  if ((is_short && !out.device) || left == 0) return {};
  auto const target = message.device == WireMessage::nowhere
                          ? std::nullopt
                          : remote_heap_.find(message.device, message.address + out.sent);
  auto const beside = [&] { return is_short ? Way{} : way_to_slot(process, left); };
  if (!target) return beside();
  u64 const most = out.device || !target->in_host_memory ? largest_unsummed : largest_write;
  u64 const bytes = std::min({left, most, target->bytes});
  Undelivered::Range const range{message.device, message.address + out.sent, bytes};
  if (peer.incomplete.in(range) != Undelivered::By::nobody) return beside();
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
  if (!channel_.write(process, WireMessage::message_kind, bytes, way.target.memory,
                      way.target.offset, out))
    return false;
  ++out->reading;
  bool const both_see_them = !out->device && (way.to_slot || way.target.in_host_memory);
  out->written = way.bytes;
  out->sum = both_see_them && !channel_.engine().keeps_bytes() ? sum_of(bytes) : 0;
  out->slot = way.to_slot ? std::optional(staging_.begin(process)) : std::nullopt;
  return true;
}

void Writes::has_sent(u32 process, u32 sequence, WireMessage const& wire) {
  auto const& message = wire.message;
  auto const window =
      wire.changes_windows() ? remote_heap_.find(message.device, message.address) : std::nullopt;
  if (!window) return;
  auto& peer = peers_of_net_[process];
  bool const in_place = wire.written == WireMessage::Written::to_window;
  Undelivered::Range const range{message.device, message.address, message.bytes};
  auto const by = in_place ? Undelivered::By::write : Undelivered::By::message;
  peer.undelivered.add(sequence, range, by);
  if (!in_place && !window->in_host_memory) peer.incomplete.add(sequence, range, by);
}

// Returns a number: messages from there before it can change no window any more.
u32 Writes::completed(u32 process) {
  auto& peer = peers_of_net_[process];
  u32 const carried_out = channel_.carried_out(process);
  if (reaches_devices_ && peer.completed != carried_out &&
      own_.all([](Access const& access) { return access.completed(); }))
    peer.completed = carried_out;
  return peer.completed;
}

void Writes::tell(u32 process, WireMessage& wire) {
  wire.completed = completed(process);
  wire.freed = staging_.freed_for(process);
}

Payload Writes::take(u32 process, WireMessage const& wire, std::string_view bytes) {
  peers_of_net_[process].incomplete.delivered_before(wire.completed);
  staging_.freed(process, wire.freed);
  if (wire.written != WireMessage::Written::to_slot) return {bytes, nullptr};
  return staging_.take(process, wire.slot, wire.message.bytes);
}

}  // namespace meshpost::detail
