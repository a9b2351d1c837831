#include "copy/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "copy/copy_stream.hpp"
#include "copy/execute.hpp"
#include "copy/together.hpp"
#include "copy/workers.hpp"
#include "fabric/host_copy.hpp"

namespace meshpost::copying {
namespace {

// To wake a thread takes as long as to copy so many bytes.
constexpr u64 at_once = u64{64} << 10;

char const* address(void const* pointer) { return static_cast<char const*>(pointer); }

void move_on_host(PitchedCopy const& rows) {
  auto& team = fabric::ThreadTeam::shared();
  if (rows.rows == 1 && rows.slices == 1) {
    team.copy(rows.target, rows.source, Bytes{rows.width});
    return;
  }
  // Pieces of about the size that a thread should take at a time. Longer rows are split again.
  u64 const total = rows.rows * rows.slices;
  if (rows.width >= (u64{1} << 20)) {
    for_each_row(rows, [&](void* target, void const* source, u64 width) {
      team.copy(target, source, Bytes{width});
    });
    return;
  }
  u64 const together = std::max<u64>(1, (u64{256} << 10) / rows.width);
  team.each((total + together - 1) / together, [&](u64 piece) {
    u64 const end = std::min(total, (piece + 1) * together);
    for (u64 i = piece * together; i < end; ++i) {
      u64 const slice = i / rows.rows, row = i % rows.rows;
      std::memcpy(
          static_cast<char*>(rows.target) + slice * rows.target_slice + row * rows.target_row,
          address(rows.source) + slice * rows.source_slice + row * rows.source_row, rows.width);
    }
  });
}

CopyStream& stream_for(Request const& request) {
  auto const traffic = request.bytes() <= at_once ? Traffic::small
                       : !request.by_engine()     ? Traffic::pageable
                                                  : Traffic::large;
  if (request.to.on_host) return copy_stream(*request.from.device, nullptr, true, traffic);
  if (request.from.on_host) return copy_stream(*request.to.device, nullptr, false, traffic);
  return copy_stream(*request.from.device, request.to.device, true, traffic);
}

StatePtr in_stream(Request const& request, CopyStream& chosen) {
  return request.plain() ? chosen.copy(request.rows.target, request.rows.source, request.rows.width)
                         : chosen.copy(request.rows);
}

void make_here(Request const& request) {
  if (request.by_host()) move_on_host(request.rows);
  else in_stream(request, stream_for(request))->wait();
}

// True for a copy between two devices by a copy engine that is large enough to fill the links
// between them.
bool fills_links(Request const& request) {
  return request.by_engine() && !request.to.on_host && !request.from.on_host &&
         request.to.device != request.from.device && request.bytes() > at_once;
}

// A copy that goes in rounds follows the others of its source.
StatePtr begin(Request const& request, bool in_rounds) {
  if (auto const plan = plan_for(request)) return execute(plan, request);
  if (in_rounds)
    return in_stream(request, copy_stream(*request.from.device, nullptr, true, Traffic::rounds));
  if (request.by_engine()) return in_stream(request, stream_for(request));
  if (request.bytes() <= at_once) {
    if (!request.by_host())
      return in_stream(request, stream_for(request));  // the driver takes the bytes at once
    move_on_host(request.rows);
    return finished();
  }
  auto state = std::make_shared<HostState>();
  movers().run([state, request] { state->run([&] { make_here(request); }); });
  return state;
}

}  // namespace

StatePtr start(Request const& request) { return begin(request, false); }

// If one device copies to several at a time, the copies share its links. Copies that meet at a
// target wait for each other there while other links are idle. So each device copies to one target
// after the other, beginning with its next neighbour. Then all links are busy in both directions:
// four GPUs reached twice the rate.
std::vector<StatePtr> start_all(std::span<Request const> requests) {
  u32 devices = 1;
  for (auto const& one : requests)
    if (fills_links(one))
      devices = std::max({devices, one.from.device->index() + 1, one.to.device->index() + 1});
  auto const round = [&](u64 i) {
    if (!fills_links(requests[i])) return 0u;
    return (requests[i].to.device->index() + devices - requests[i].from.device->index()) % devices;
  };
  std::vector<u64> order(requests.size());
  std::iota(order.begin(), order.end(), u64{0});
  std::ranges::sort(order, {}, [&](u64 i) { return std::pair(round(i), i); });
  std::vector<StatePtr> states(requests.size());  // before anything is in progress
  auto started =
      start_each(order, [&](u64 i) { return begin(requests[i], fills_links(requests[i])); });
  for (u64 i = 0; i < order.size(); ++i) states[order[i]] = std::move(started[i]);
  return states;
}

void make(Request const& request) {
  if (auto const plan = plan_for(request)) execute(plan, request)->wait();
  else make_here(request);
}

void queue(Request const& request, Stream& stream) {
  if (request.plain())
    stream.copy(request.rows.target, request.rows.source, Bytes{request.rows.width});
  else stream.copy(request.rows);
}

}  // namespace meshpost::copying
