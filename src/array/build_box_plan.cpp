// Plans from boxes. Each process finds out what all parts receive: from geometry, without lists of
// elements. From that follow the numbers of elements at both ends, and the most of any part. It
// then lists the elements of its own parts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "array/box_halo.hpp"
#include "array/part_owners.hpp"
#include "array/plan_state.hpp"
#include "base/hash.hpp"
#include "copy/job/state.hpp"
#include "copy/state.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

u64 fingerprint_of(Boxes const& boxes, BoxHalo const& halo) {
  auto const& [low, high] = halo.widths;
  std::array const all{boxes.fingerprint(),
                       u64{low[0]},
                       u64{low[1]},
                       u64{low[2]},
                       u64{high[0]},
                       u64{high[1]},
                       u64{high[2]},
                       u64{halo.corners},
                       u64{halo.own},
                       static_cast<u64>(halo.boundary[0]),
                       static_cast<u64>(halo.boundary[1]),
                       static_cast<u64>(halo.boundary[2]),
                       u64{halo.components},
                       u64{halo.components_apart}};
  return hash_of({reinterpret_cast<char const*>(all.data()), sizeof all});
}

std::string describe(Boxes const& boxes, BoxHalo const& halo) {
  auto const& [low, high] = halo.widths;
  std::string boundary;
  for (auto const one : halo.boundary) boundary += "npr"[static_cast<u32>(one)];
  return fmt::format(
      "{} with number {:x}; halo of {}+{}, {}+{}, {}+{} cells{}{}, boundary {}, {} components{}",
      boxes.describe(), boxes.fingerprint(), low[0], high[0], low[1], high[1], low[2], high[2],
      halo.corners ? " with corners" : "", halo.own ? "" : " without those of the box itself",
      boundary, halo.components, halo.components_apart ? " apart" : "");
}

void make_consecutive(Places& places) {
  if (!places.consecutive(0, places.list.size())) return;
  if (!places.list.empty()) places.first = places.list[0];
  places.list = {};
}

class BoxBuilder {
 public:
  BoxBuilder(Boxes const& boxes, BoxHalo const& halo, PartsHere const& here)
      : boxes_(boxes),
        halo_(halo),
        state_(std::make_shared<Plan::State>(
            Plan::State{.distribution = Distribution::boxes(boxes)})) {
    state_->frames = {boxes, halo};
    state_->fingerprint = fingerprint_of(boxes, halo);
    if (here.job) find_parts(here);
    else take_parts(here);
  }

  std::shared_ptr<Plan::State const> build() {
    for (u32 part = 0; part < count_; ++part) {
      u32 const number = state_->first + part;
      u64 const cells = boxes_.box(number).cells();
      state_->parts.push_back(
          {.part = number, .elements = elements_of(number), .own = cells * halo_.components});
    }
    add_entries();
    for (auto& part : state_->parts) {
      make_consecutive(part.sent);
      make_consecutive(part.received);
    }
    return state_;
  }

 private:
  void find_parts(PartsHere const& here) {
    copying::check_caller(make_a_plan);
    auto const& group = here.job->state().group;
    group.together(make_a_plan, [&] {
      check_halo(boxes_, halo_);
      if (!here.count && group.count() > 1)
        throw Error(Kind::bad_argument, make_a_plan, "PartsHere::count is missing",
                    "give the number of this process's parts");
    });
    count_ = here.count.value_or(boxes_.parts());
    auto owners = find_owners(group, {.parts_here = count_,
                                      .parts = boxes_.parts(),
                                      .fingerprint = state_->fingerprint,
                                      .described = describe(boxes_, halo_),
                                      .what = "other boxes or another halo",
                                      .remedy = "give all processes the same boxes and halo",
                                      .of_parts = "frames",
                                      .one = "a count"});
    state_->process = group.number();
    state_->processes = std::move(owners.processes);
    state_->near = near_in(group);
    state_->first = owners.first[state_->process];
    group.together(make_a_plan, [&] {
      if (here.first && *here.first != state_->first)
        throw Error(Kind::bad_argument, make_a_plan,
                    fmt::format("PartsHere::first is {}, and by the counts of the processes before "
                                "it is {}",
                                *here.first, state_->first),
                    "give the parts of process 0 first, or leave `first` out");
    });
  }
  void take_parts(PartsHere const& here) {
    check_halo(boxes_, halo_);
    u32 const first = here.first.value_or(0), parts = boxes_.parts();
    if (first > parts || here.count.value_or(0) > parts - first)
      throw Error(Kind::bad_argument, make_a_plan,
                  fmt::format("parts here are {} from {} on, and there are {}",
                              here.count.value_or(parts), first, parts),
                  "give parts that the boxes have");
    state_->first = first, count_ = here.count.value_or(parts - first);
    state_->processes.assign(parts, Plan::State::elsewhere);
    std::fill_n(state_->processes.begin() + first, count_, 0);
    state_->near = {true};
  }

  u64 elements_of(u32 part) const {
    return boxes_.box(part).grown(halo_.widths).cells() * halo_.components;
  }
  PartPlan* here(u32 part) {
    return part - state_->first < count_ ? &state_->parts[part - state_->first] : nullptr;
  }

  // Receivers ascend, and senders within them. So the parts of entries ascend at both ends.
  void add_entries() {
    struct Sum {
      u64 elements = 0, entries = 0;
    };
    std::vector<Sum> sent(boxes_.parts());
    auto& most = state_->most;
    for (u32 to = 0; to < boxes_.parts(); ++to) {
      Sum received;
      auto const pieces = halo_pieces(boxes_, halo_, to);
      for (u64 begin = 0, end = 0; begin < pieces.size(); begin = end) {
        u32 const from = pieces[begin].from;
        u64 count = 0;
        for (; end < pieces.size() && pieces[end].from == from; ++end)
          count += pieces[end].target.cells() * halo_.components;
        if (auto* const part = here(to))
          part->receives.push_back({from, count, received.elements, sent[from].elements});
        if (auto* const part = here(from))
          part->sends.push_back({to, count, sent[from].elements, received.elements});
        for (u64 i = begin; i < end; ++i) list_elements(pieces[i]);
        received.elements += count, ++received.entries;
        sent[from].elements += count, ++sent[from].entries;
      }
      most.size = std::max(most.size, elements_of(to));
      most.received = std::max(most.received, received.elements);
      most.entries = std::max(most.entries, received.entries);
    }
    for (auto const& [elements, entries] : sent) {
      most.sent = std::max(most.sent, elements);
      most.entries = std::max(most.entries, entries);
    }
  }
  void list_elements(HaloPiece const& piece) {
    if (auto* const part = here(piece.to)) {
      Box const frame = boxes_.box(piece.to).grown(halo_.widths), grid = boxes_.grid();
      each_element(piece, [&](Cell cell, u32 component) {
        part->received.list.push_back(halo_.place_of(frame, cell, component));
        part->halo.push_back(grid.place_of(piece.source(cell)));
      });
      part->received.count = part->received.list.size();
    }
    if (auto* const part = here(piece.from)) {
      Box const frame = boxes_.box(piece.from).grown(halo_.widths);
      each_element(piece, [&](Cell cell, u32 component) {
        part->sent.list.push_back(halo_.place_of(frame, piece.source(cell), component));
      });
      part->sent.count = part->sent.list.size();
    }
  }
  // In an order that makes the places consecutive where they can be.
  template <class Work>
  void each_element(HaloPiece const& piece, Work&& work) const {
    u32 const outer = halo_.components_apart ? halo_.components : 1,
              inner = halo_.components_apart ? 1 : halo_.components;
    auto const& [begin, end] = piece.target;
    for (u32 apart = 0; apart < outer; ++apart)
      for (i64 z = begin.z; z < end.z; ++z)
        for (i64 y = begin.y; y < end.y; ++y)
          for (i64 x = begin.x; x < end.x; ++x)
            for (u32 beside = 0; beside < inner; ++beside) work(Cell{x, y, z}, apart + beside);
  }

  Boxes const& boxes_;
  BoxHalo const& halo_;
  std::shared_ptr<Plan::State> state_;
  u32 count_ = 0;
};

}  // namespace

Plan Plan::from_boxes(Boxes const& boxes, BoxHalo const& halo, PartsHere const& here) {
  return Plan(BoxBuilder(boxes, halo, here).build());
}

}  // namespace meshpost
