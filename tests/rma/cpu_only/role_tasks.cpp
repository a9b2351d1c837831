// The order of tickets, as a value: a model goes through all orders of events.
#include <gtest/gtest.h>
#include <meshpost/rma/roles.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace meshpost {
namespace {

// All interleavings of draws and ends of tasks, as a value: a ring of devices, a few steps.
class Model {
 public:
  Model(RoleTasks const& tasks, u32 devices, u32 ranks, bool receives_first)
      : tasks_(tasks), devices_(devices), ranks_(ranks), first_(receives_first) {}

  /// True if each order of events ends with all steps done. Each state is looked at once.
  bool always_ends() {
    State begin(devices_, Device{0, 0, 0, 0, std::vector<u32>(ranks_, idle)});
    std::vector<State> left{begin};
    std::set<State> seen{begin};
    while (!left.empty()) {
      State const state = left.back();
      left.pop_back();
      auto const next = successors(state);
      if (next.empty() &&
          !std::ranges::all_of(state, [](auto const& device) { return device.step == steps; }))
        return false;
      for (auto const& one : next)
        if (seen.insert(one).second) left.push_back(one);
    }
    states = seen.size();
    return true;
  }
  std::size_t states = 0;

 private:
  static constexpr u32 steps = 2, idle = ~0u;
  struct Device {
    u32 step, drawn, sent, announced;  // sent: parts, in all steps
    std::vector<u32> tickets;          // that the ranks work on
    auto operator<=>(Device const&) const = default;
  };
  using State = std::vector<Device>;

  RoleTask task(u32 ticket) const {
    return tasks_.at(ticket, first_ ? ReceiveTicket::first : ReceiveTicket::behind_interior);
  }
  std::vector<State> successors(State const& state) const {
    std::vector<State> next;
    for (u32 d = 0; d < devices_; ++d)
      for (u32 r = 0; r < ranks_ && state[d].step < steps; ++r) {
        State after = state;
        if (advance(after, d, r)) next.push_back(after);
      }
    return next;
  }
  // A rank draws, or ends its task. False: it waits.
  bool advance(State& state, u32 d, u32 r) const {
    Device& device = state[d];
    u32& ticket = device.tickets[r];
    if (ticket == idle) {
      ticket = device.drawn++;
      return true;
    }
    switch (task(ticket).role) {
      case HaloRole::send: ++device.sent; break;
      case HaloRole::interior: break;
      case HaloRole::receive:
        for (u32 const from : {(d + 1) % devices_, (d + devices_ - 1) % devices_})
          if (state[from].sent < (device.step + 1) * tasks_.sends()) return false;
        device.announced = device.step + 1;
        break;
      case HaloRole::unpack:
        if (device.announced != device.step + 1) return false;
        break;
      case HaloRole::none:
        if (device.drawn != tasks_.count() + ranks_) return false;
        for (u32 const other : device.tickets)
          if (other == idle || task(other).role != HaloRole::none) return false;
        device.tickets.assign(ranks_, idle);
        device.drawn = 0, ++device.step;
        return true;
    }
    ticket = idle;
    return true;
  }

  RoleTasks tasks_;
  u32 devices_, ranks_;
  bool first_;
};

TEST(RoleTasks, no_order_of_draws_makes_a_deadlock) {
  for (u32 devices = 1; devices <= 2; ++devices)
    for (u32 ranks = 1; ranks <= 3; ++ranks) {
      if (devices * ranks > 4) continue;
      Model model({.messages = 2, .packers = 1, .interior = 1, .unpackers = 1}, devices, ranks,
                  ranks > 1);
      EXPECT_TRUE(model.always_ends()) << devices << " devices of " << ranks << " ranks";
      EXPECT_GT(model.states, 10u);
    }
}

TEST(RoleTasks, a_rank_that_is_alone_must_not_receive_first) {
  Model model({.messages = 2, .packers = 1, .interior = 1, .unpackers = 1}, 2, 1, true);
  EXPECT_FALSE(model.always_ends());  // so the model finds deadlocks
}

TEST(RoleTasks, every_task_has_one_ticket) {
  RoleTasks const tasks{.messages = 2, .packers = 3, .interior = 4, .unpackers = 2};
  for (auto const receive : {ReceiveTicket::first, ReceiveTicket::behind_interior}) {
    std::map<HaloRole, std::set<std::pair<u32, u32>>> found;
    for (u64 ticket = 0; ticket < tasks.count(); ++ticket) {
      auto const task = tasks.at(ticket, receive);
      EXPECT_TRUE(found[task.role].insert({task.index, task.part}).second);
    }
    EXPECT_EQ(found[HaloRole::receive].size(), 1u);
    EXPECT_EQ(found[HaloRole::send].size(), 6u);
    EXPECT_EQ(found[HaloRole::interior].size(), 4u);
    EXPECT_EQ(found[HaloRole::unpack].size(), 2u);
    EXPECT_FALSE(tasks.at(tasks.count(), receive));
  }
}

}  // namespace
}  // namespace meshpost
