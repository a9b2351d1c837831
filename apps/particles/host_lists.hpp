#pragma once
// Lists in memory of the host: those at the beginning of a run, and those of a result.
#include "problem.hpp"
#include "shape.hpp"

namespace particles {

template <class Real>
void make_empty(List<Real> const& list, u32 chunks) {
  list.count() = 0;
  for (u32 c = 0; c < chunks; ++c) list.ups(c) = list.downs(c) = 0;
}

/// Lists of the segments of `own` and of the halo; all bytes are 0xff, so that a value that was
/// never written is no number. Beyond the domain they are empty, and stay so.
template <class Real>
std::vector<std::byte> poisoned_lists(Problem const& problem, Range own) {
  u32 const count = own.size() + 2 * halo;
  std::vector<std::byte> bytes(count * List<Real>::size(problem.chunks), std::byte{0xff});
  Lists<Real> const lists{bytes.data(), problem.chunks};
  for (u32 place = 0; place < count; ++place) {
    i64 const segment = i64{own.begin} + place - halo;
    if (segment < 0 || segment >= problem.segments) make_empty(lists[place], problem.chunks);
  }
  return bytes;
}

/// The same with the particles of `state`, in the order of their numbers.
template <class Real>
std::vector<std::byte> lists_of(Problem const& problem, State const& state, Range own) {
  auto bytes = poisoned_lists<Real>(problem, own);
  Lists<Real> const lists{bytes.data(), problem.chunks};
  u32 const count = own.size() + 2 * halo;
  for (u32 place = 0; place < count; ++place) make_empty(lists[place], problem.chunks);
  for (u32 id = 0; id < state.size(); ++id) {
    auto const& row = state[id];
    i64 const place = static_cast<i64>(row.segment) - own.begin + halo;
    if (place < 0 || place >= count) continue;
    auto const list = lists[static_cast<u32>(place)];
    u32 const slot = list.count()++, lane = slot % lanes;
    auto& to = list.slots(slot / lanes);
    to.x[lane] = static_cast<Real>(row.x), to.y[lane] = static_cast<Real>(row.y);
    to.vx[lane] = static_cast<Real>(row.vx), to.vy[lane] = static_cast<Real>(row.vy);
    to.id[lane] = id;
  }
  return bytes;
}

/// Puts the particles of the list of `segment` into `state`, whose free rows have a negative
/// segment. Returns how many there are. \throws Error(kernel_failed) for a number that does not
/// exist, or is there twice
template <class Real>
u64 read_list(List<Real> const& list, u32 segment, State& state) {
  u64 found = 0;
  for (u32 slot = 0; slot < list.used_chunks() * lanes && slot < list.count(); ++slot, ++found) {
    u32 const chunk = slot / lanes, lane = slot % lanes;
    auto const& from = list.slots(chunk);
    u32 const id = from.id[lane];
    if (id >= state.size() || state[id].segment >= 0)
      throw meshpost::Error(meshpost::Kind::kernel_failed, "read the result",
                            "segment " + std::to_string(segment) + " has particle " +
                                std::to_string(id) + ", which is elsewhere or does not exist",
                            "this is a bug of the program");
    int const way = static_cast<int>(list.ups(chunk) >> lane & 1) -
                    static_cast<int>(list.downs(chunk) >> lane & 1);
    state[id] = {from.x[lane], from.y[lane], from.vx[lane], from.vy[lane],
                 static_cast<double>(segment) + way};
  }
  return found;
}

}  // namespace particles
