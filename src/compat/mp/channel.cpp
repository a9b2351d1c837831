#include "compat/mp/channel.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "meshpost/device/block.hpp"
#include "rma/world_state.hpp"

namespace meshpost::compat::mp {
namespace {

u32* word_at(char* part, u64 offset) { return reinterpret_cast<u32*>(part + offset); }

// A slot: the chunk's number, its header a line further, its bytes another one further.
static_assert(sizeof(ChunkHeader) <= ChannelShape::line);
constexpr u64 header_at = ChannelShape::line, bytes_at = 2 * ChannelShape::line;

}  // namespace

ChannelShape ChannelShape::of(u32 processes) {
  constexpr u64 budget = u64{32} << 20, least = 1024, most = u64{32} << 10;
  ChannelShape shape{.processes = processes};
  u64 const each = budget / (u64{processes} * lanes * shape.slots);
  shape.slot_bytes = std::clamp(std::bit_floor(each), least, most);
  return shape;
}

void PeerPart::write(u64 offset, void const* source, u64 bytes) const {
  if (near_) std::memcpy(near_ + offset, source, bytes);
  else window_.write(rank_, offset, std::span(static_cast<std::byte const*>(source), bytes));
}

void PeerPart::publish(u64 offset, u32 value) const {
  if (near_) return memory::store(word_at(near_, offset), value, Order::system);
  write(offset, &value, sizeof value);
}

Channels::Channels(Window<std::byte> const& window, ChannelShape const& shape, RankId rank)
    : shape_(shape), own_(rank.value), sides_(std::size_t{shape.processes} * ChannelShape::lanes) {
  auto const world = detail::world_of(window.info().world, "mp_init");
  auto const& record = world->windows().record_of(window.info(), "mp_init");
  auto const& layout = world->layout();
  u32 const own_device = rank.value - layout.first_device;
  for (u32 process = 0; process < shape.processes; ++process) {
    bool const far = layout.far(own_device, process);
    peers_.emplace_back(window, RankId{process},
                        far ? nullptr : world->windows().part_of(own_device, record, process));
  }
  part_ = world->windows().part_of(own_device, record, own_);
}

u32 Channels::count_taken(End const& to) const {
  return memory::load_acquire(word_at(part_, shape_.taken_at(to.process, to.lane)));
}
u32 Channels::room(End const& to) const { return shape_.slots - (side(to).sent - count_taken(to)); }
bool Channels::taken(End const& to, u32 number) const {
  return static_cast<i32>(count_taken(to) - number) >= 0;
}

void Channels::send(End const& to, ChunkHeader const& header,
                    std::function<void(char*)> const& fill) {
  auto const& peer = peers_[to.process];
  u32 const number = side(to).sent++;
  u64 const slot = shape_.slot_at(own_, to.lane, number);
  if (char* const near = peer.near(slot)) {
    std::memcpy(near + header_at, &header, sizeof header);
    fill(near + bytes_at);
  } else {
    std::vector<char> staged(bytes_at - header_at + header.bytes);
    std::memcpy(staged.data(), &header, sizeof header);
    fill(staged.data() + (bytes_at - header_at));
    peer.write(slot + header_at, staged.data(), staged.size());
  }
  peer.publish(slot, number + 1);
}

bool Channels::next(End const& from, Chunk& chunk) const {
  u32 const number = side(from).took;
  char* const slot = part_ + shape_.slot_at(from.process, from.lane, number);
  if (memory::load_acquire(word_at(slot, 0)) != number + 1) return false;
  std::memcpy(&chunk.header, slot + header_at, sizeof chunk.header);
  chunk.bytes = slot + bytes_at;
  return true;
}

void Channels::take(End const& from) {
  peers_[from.process].publish(shape_.taken_at(own_, from.lane), ++side(from).took);
}

}  // namespace meshpost::compat::mp
