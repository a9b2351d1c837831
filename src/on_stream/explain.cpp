// The mechanism of a stream's operation, in words.
#include <fmt/format.h>

#include "on_stream/endpoint.hpp"

namespace meshpost::detail {
namespace {

std::string receiver_of(WorldState& world, StreamCall const& call) {
  auto const& names = world.layout().names;
  auto const on = [&](u32 device) { return device < names.size() ? names[device] : "?"; };
  if (auto const* const stream = std::get_if<StreamId>(&call.notified))
    return fmt::format("stream {} of {}", stream->number, on(stream->device));
  if (auto const* const host = std::get_if<HostId>(&call.notified))
    return fmt::format("the host of {}", on(host->device));
  u32 const rank = std::holds_alternative<RankId>(call.notified)
                       ? u32{std::get<RankId>(call.notified)}
                       : u32{call.rank};
  return fmt::format("rank {} on {}", rank, on(world.layout().device_of(rank)));
}

std::string by_kernel(u32 blocks, bool early) {
  return fmt::format("a kernel of {} block{}{}", blocks, blocks == 1 ? "" : "s",
                     early ? ", resident while the work in front of it ends," : "");
}

constexpr char const* far_way =
    "out of reach: the stream writes it into pinned memory, and a thread of the host carries it "
    "there";
constexpr char const* far_way_on_cpu = "out of reach: the stream's thread asks the other process";

std::string way_of(Stream& stream, StreamCall const& call, ResolvedCall const& resolved) {
  bool const notifies = !std::holds_alternative<std::monostate>(call.notified);
  if (resolved.far) return stream.on_host() ? far_way_on_cpu : far_way;
  auto const way = stream.way_of(resolved.put);
  std::string const add = notifies ? " and adds 1 to the counter" : "";
  switch (way.by) {
    case StreamWay::thread:
      return call.puts() ? "the stream's thread copies" + add
                         : "the stream's thread adds 1 to the counter";
    case StreamWay::copy_engine:
      return std::string("a copy engine copies") +
             (notifies ? ", then a kernel of one thread adds 1 to the counter" : "");
    case StreamWay::kernel: break;
  }
  if (!call.puts() || resolved.put.bytes == 0)
    return by_kernel(1, way.early) + " of one thread adds 1 to the counter";
  return by_kernel(way.blocks, way.early) + " copies" + add;
}

}  // namespace

std::string EndpointState::explained(WorldState& world, StreamCall const& call,
                                     ResolvedCall const& resolved) const {
  auto const text = [&](std::string const& what, std::string const& way) {
    return fmt::format("{}, {}: {}: {}", said(name_of(call.verb)), resolved.window, what, way);
  };
  u64 const bytes = call.count * call.element_bytes;
  std::string const size = fmt::format("{}{} B", call.units ? "at most " : "", bytes);
  auto const other = [&] {
    return fmt::format("stream {} of {}", call.peer.number, world.layout().names[call.peer.device]);
  };
  switch (call.verb) {
    case StreamCall::wait: {
      std::string counts;
      for (auto const& [tag, count] : call.awaited)
        counts += fmt::format("{}{} of tag {}", counts.empty() ? "" : ", ", count, tag.value);
      return text("notifications: " + counts, stream_->on_host()
                                                  ? "the stream's thread polls the counters"
                                                  : "a kernel of one warp polls the counters");
    }
    case StreamCall::send:
    case StreamCall::receive: {
      u32 const chunks = resolved.channel.chunks(bytes);
      auto const what = fmt::format("{} {} {} with tag {} in {} chunk{}", size,
                                    call.verb == StreamCall::send ? "to" : "from", other(),
                                    call.tag.value, chunks, chunks == 1 ? "" : "s");
      if (resolved.far) return text(what, stream_->on_host() ? far_way_on_cpu : far_way);
      return text(what, stream_->on_host()
                            ? "the stream's thread copies, through slots of the receiver's memory"
                            : "a kernel copies, through slots of the receiver's memory");
    }
    case StreamCall::notify:
      return text(fmt::format("to {}, tag {}", receiver_of(world, call), call.tag.value),
                  way_of(*stream_, call, resolved));
    case StreamCall::put_notify:
      return text(fmt::format("{} to {}, tag {}", size, receiver_of(world, call), call.tag.value),
                  way_of(*stream_, call, resolved));
    default:
      return text(fmt::format("{} to {}", size, receiver_of(world, call)),
                  way_of(*stream_, call, resolved));
  }
}

}  // namespace meshpost::detail
