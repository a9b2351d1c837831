#include "meshpost/on_stream/message_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "meshpost/device/stream_channel.hpp"
#include "rma/world_state.hpp"

namespace meshpost {
namespace {

constexpr u64 line = 128;

u64 lines(u64 bytes) { return (bytes + line - 1) / line * line; }

void check(MessageWindowOptions const& options) {
  auto const refuse = [&](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, fmt::format("make message window '{}'", options.name),
                std::move(cause), std::move(remedy));
  };
  if (options.streams == 0 || options.streams > StreamId::most)
    refuse(fmt::format("{} streams of a device were asked for", options.streams),
           fmt::format("ask for 1 to {}", StreamId::most));
  if (options.tags == 0 || options.tags > 1024)
    refuse(fmt::format("{} tags were asked for", options.tags), "ask for 1 to 1024");
  if (!std::has_single_bit(options.slots) || options.slots > 1024)
    refuse(fmt::format("{} slots were asked for", options.slots),
           "ask for a power of two, at most 1024");
  constexpr u64 most = StreamMessage::most_bytes - ChunkHeader::pitch;
  if (options.slot_bytes == 0 || options.slot_bytes % line != 0 || options.slot_bytes > most)
    refuse(fmt::format("slots of {} bytes were asked for", options.slot_bytes),
           fmt::format("ask for a multiple of {}, at most {}; longer messages take several slots",
                       line, most));
}

// Out of reach each channel has two counters.
void check_counters(MessageWindow::Layout const& layout, std::string const& name, bool any_far) {
  constexpr u64 most = (u64{1} << 16) / 2;
  u64 const channels = u64{layout.devices} * layout.streams * layout.tags;
  if (!any_far || channels <= most) return;
  throw Error(Kind::bad_argument, fmt::format("make message window '{}'", name),
              fmt::format("{} devices with {} streams and {} tags were asked for, which are {} "
                          "channels of a stream; between devices out of reach there are at most {}",
                          layout.devices, layout.streams, layout.tags, channels, most),
              "ask for fewer streams or tags, or make several message windows");
}

// Three lines: each word that another device writes has one that its owner does not write.
u64 words_of(MessageWindow::Layout const& layout) {
  return 2 * line + lines(layout.slots * sizeof(u32));
}
u64 ring_of(MessageWindow::Layout const& layout) {
  return layout.slots * (ChunkHeader::pitch + layout.slot_bytes);
}

}  // namespace

u64 MessageWindow::Layout::words_at(u32 mine, u32 channel) const {
  return (u64{mine} * channels() + channel) * words_of(*this);
}
u64 MessageWindow::Layout::slots_at(u32 mine, u32 channel) const {
  return words_at(streams, 0) + (u64{mine} * channels() + channel) * ring_of(*this);
}
u64 MessageWindow::Layout::bytes() const { return slots_at(streams, 0); }

MessageWindow::MessageWindow(World& world, MessageWindowOptions const& options) {
  check(options);
  auto const state = detail::world_of(world.communicator().world, "make a message window");
  auto const& ranks = state->layout();
  layout_ = {.devices = ranks.device_count(),
             .streams = options.streams,
             .tags = options.tags,
             .slots = options.slots,
             .slot_bytes = options.slot_bytes};
  // A device's memory is the part of its first rank.
  std::vector<Extent> parts(ranks.ranks());
  for (u32 rank = 0; rank < parts.size(); rank += ranks.ranks_per_device)
    parts[rank].count = layout_.bytes();
  // Counters are used only out of reach: chunks that have come, and permissions to send. A process
  // may not know of all pairs of devices.
  auto const answers = state->group().exchange(
      fmt::format("make message window '{}' of {} streams, {} tags, {} slots of {} bytes",
                  options.name, options.streams, options.tags, options.slots, options.slot_bytes),
      ranks.any_far() ? "far" : "");
  bool const any_far = std::ranges::any_of(answers, [](auto const& one) { return !one.empty(); });
  check_counters(layout_, options.name, any_far);
  auto const name = options.name.empty() ? std::string("messages") : options.name;
  try {
    window_ = world.window<std::byte>(parts, Tags{any_far ? 2 * layout_.channels() : 0}, name);
  } catch (Error const& error) {
    if (error.kind() != Kind::bad_argument && error.kind() != Kind::out_of_memory) throw;
    throw Error(error.kind(), fmt::format("make message window '{}'", name),
                fmt::format("it needs {} bytes of each device: {}", layout_.bytes(), error.cause()),
                "ask for fewer streams, tags or slots, or for smaller slots");
  }
}

}  // namespace meshpost
