#pragma once
// Random exchanges in a kernel, and what must come of them.
#include <meshpost/array/exchange.hpp>
#include <meshpost/meshpost.hpp>

#include <random>

#include "array/box_cases.hpp"
#include "support/worlds.hpp"

namespace meshpost::test {

/// In the marks of a part's places: a place that is neither own nor received. Else, twice the
/// number of the element, and 1 for an own one.
inline constexpr u64 unused = ~u64{0};

/// In each step, all elements change, and then go to the halos. Each device's array holds its part.
struct HaloSteps {
  Exchange<u64> exchange;
  Window<u64> values, marks;  // of all places of a part
  Window<u64> size;           // number of places
  Window<u32> wrong, delays;
  u64 seed;
  u32 steps;

  MESHPOST_FN static u64 value(u64 seed, u64 index, u32 step) { return mixed(seed, index, step); }

  MESHPOST_FN void operator()(Rank& self) const {
    u64 const all = size.local(self)[0];
    auto const x = values.local(self).subspan(0, all);
    auto const mark = marks.local(self);
    u64 const ranks = self.local_size(), me = self.local_id();
    u64 const from = all * me / ranks, to = all * (me + 1) / ranks;
    RankExchange<u64> halo(self, exchange);
    for (u32 step = 0; step < steps; ++step) {
      // Others come first, now and then.
      for (u64 k = mixed(seed, self.id(), step) % 4; k > 0; --k) self.test(delays, Tag{0});
      self.each(to - from, [&](u64 i) {
        u64 const m = mark[from + i];
        if (m % 2 == 1) x[from + i] = m == unused ? unused : value(seed, m / 2, step);
      });
      halo.start(x);
      halo.finish(x);
      self.each(all, [&](u64 i) {  // by all ranks: each must see all
        u64 const m = mark[i];
        if (x[i] != (m == unused ? unused : value(seed, m / 2, step)))
          wrong.local(self)[0] = step + 1;
      });
      self.sync();  // or else another thread would change what this one reads
      self.barrier(self.device_communicator());
    }
  }
};

/// Halos go to their owners, who combine them in the order of the parts.
struct BackSteps {
  Exchange<u64> exchange;
  Window<u64> values, marks, size;
  u64 seed;
  u32 steps;

  MESHPOST_FN static u64 given(u64 seed, u32 part, u64 index, u32 step) {
    return mixed(seed, part, index, step);
  }
  MESHPOST_FN static u64 combined(u64 old, u64 come) { return old * 31 + come; }

  MESHPOST_FN void operator()(Rank& self) const {
    u64 const all = size.local(self)[0];
    auto const x = values.local(self).subspan(0, all);
    auto const mark = marks.local(self);
    u64 const ranks = self.local_size(), me = self.local_id();
    u64 const from = all * me / ranks, to = all * (me + 1) / ranks;
    RankExchange<u64> back(self, exchange);
    for (u32 step = 0; step < steps; ++step) {
      self.each(to - from, [&](u64 i) {
        u64 const m = mark[from + i];
        if (m % 2 == 0) x[from + i] = given(seed, self.device(), m / 2, step);
      });
      back.start(x);
      back.finish(x, [](u64 old, u64 come) { return combined(old, come); });
    }
  }
};

/// Two exchanges one after the other in a kernel, over the same memory. Device 0 sends to all
/// others, and receives nothing: it is far ahead, and would be too far without the words of each.
struct TwoInOne {
  Exchange<u64> exchange;
  Window<u64> values, own;
  Window<u32> wrong, delays;
  u32 steps;

  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = own.local(self);
    auto const x = values.local(self).subspan(0, mine[1]);
    for (u32 turn = 0; turn < 2; ++turn) {
      RankExchange<u64> halo(self, exchange);
      for (u32 step = 0; step < steps; ++step) {
        u64 const now = 1000 * turn + step;
        if (self.device() == 0 && self.local_id() == 0)
          self.each(mine[0], [&](u64 i) { x[i] = now; });
        else if (self.device() == self.device_count() - 1)
          for (u32 k = 0; k < 20; ++k) self.test(delays, Tag{0});
        halo.start(x);
        halo.finish(x);
        self.each(mine[1] - mine[0], [&](u64 i) {
          if (x[mine[0] + i] != now) wrong.local(self)[0] = 1 + step;
        });
        self.barrier(self.device_communicator());
      }
    }
  }
};

/// A random distribution over so many parts, and what each needs; the same for the same seed.
struct RandomNeeds {
  Distribution distribution;
  std::vector<std::vector<u64>> needs;

  RandomNeeds(u64 seed, u32 parts) : distribution(Distribution::block(0, 1)) {
    std::mt19937_64 random(seed);
    u64 const size = random() % 4 == 0 ? random() % (2 * parts) : 1 + random() % 4000;
    std::vector<u32> owners(size);
    for (auto& owner : owners) owner = static_cast<u32>(random() % parts);
    distribution =
        random() % 2 == 0 ? Distribution::block(size, parts) : Distribution::general(owners, parts);
    needs.resize(parts);
    for (auto& list : needs)
      for (u64 i = size == 0 || random() % 4 == 0 ? 0 : random() % 3000; i > 0; --i)
        list.push_back(random() % size);
  }
};

/// The marks of a part whose halo lies behind its own elements.
inline std::vector<u64> marks_of(Plan const& plan, u32 part) {
  auto const& one = plan.of(part);
  std::vector<u64> all;
  for (u64 place = 0; place < one.own; ++place)
    all.push_back(2 * plan.distribution().index_of(part, place) + 1);
  for (u64 const index : one.halo) all.push_back(2 * index);
  return all;
}

/// All that is wrong after random exchanges with this plan on this World; nothing: empty. `mark`
/// gives the marks of a part. Collective.
template <class Mark>
std::string wrong_exchanges_of(World& world, Plan const& plan, Mark const& mark, u64 seed,
                               Launch const& launch) {
  u64 const most = plan.most().size + 1;
  auto const window = [&](u64 count) { return world.window<u64>(shared_parts(world, count)); };
  auto const values = window(most), marks = window(most), size = window(1);
  auto const wrong = world.window<u32>(shared_parts(world, 1), Tags{0});
  auto const delays = world.window<u32>(1, Tags{1});
  std::vector<u64> const zeros(most);
  u32 const steps = 1 + static_cast<u32>(seed % 7);
  auto const exchange = make_exchange<u64>(world, plan);
  auto const back = make_exchange<u64>(world, plan.reverse());
  std::string text;
  auto const first_rank = [&](u32 part) { return RankId{part * world.ranks_per_device()}; };
  for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part) {
    std::vector<u64> const all = mark(part);
    if (!all.empty()) marks.write(first_rank(part), 0, std::span<u64 const>(all));
    u64 const places[] = {all.size()};
    size.write(first_rank(part), 0, std::span<u64 const>(places));
  }
  for (u32 again = 0; again < 2; ++again) {  // the same memory in another run
    world.run(HaloSteps{exchange, values, marks, size, wrong, delays, seed + again, steps}, launch);
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part)
      if (auto const step = wrong.read(first_rank(part))[0]; step != 0)
        text += "part " + std::to_string(part) + " had another halo in step " +
                std::to_string(step - 1) + "\n";
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part)
      values.write(first_rank(part), 0, std::span<u64 const>(zeros));
    world.run(BackSteps{back, values, marks, size, seed, steps}, launch);
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part) {
      auto const& one = plan.of(part);
      std::vector<u64> const all = mark(part);
      std::vector<u64> expected(one.size());
      for (u32 step = 0; step < steps; ++step)
        for (auto const& entry : one.sends)
          for (u64 i = 0; i < entry.count; ++i) {
            u64 const place = one.sent[entry.offset + i];
            expected[place] = BackSteps::combined(
                expected[place], BackSteps::given(seed, entry.part, all[place] / 2, step));
          }
      auto const come = values.read(first_rank(part));
      for (u64 place = 0; place < all.size(); ++place)
        if (all[place] % 2 == 1 && come[place] != expected[place])
          return "part " + std::to_string(part) + " combined something else\n";
    }
  }
  for (auto const& one : {exchange, back}) free_exchange(world, one);
  world.free(values), world.free(marks), world.free(size), world.free(wrong), world.free(delays);
  return text;
}

inline std::string wrong_exchanges(World& world, Plan const& plan, u64 seed,
                                   Launch const& launch = {}) {
  return wrong_exchanges_of(
      world, plan, [&](u32 part) { return marks_of(plan, part); }, seed, launch);
}

/// The same with a random grid. Each process makes its parts of the plan alone.
inline std::string wrong_box_exchanges(World& world, u64 seed, Launch const& launch = {}) {
  BoxCase const one(seed, world.device_count());
  u32 const first = world.first_rank() / world.ranks_per_device(),
            here = static_cast<u32>(world.devices().size());
  auto const plan = Plan::from_boxes(one.boxes, one.halo, {.first = first, .count = here});
  auto const marks = [&](u32 part) {
    auto all = one.expected(part);
    auto const own = one.expected(part, true);
    for (u64 place = 0; place < all.size(); ++place)
      all[place] =
          all[place] == BoxCase::nothing ? unused : 2 * all[place] + (own[place] == all[place]);
    return all;
  };
  auto const wrong = wrong_exchanges_of(world, plan, marks, seed, launch);
  return wrong.empty() ? wrong : one.describe() + ": " + wrong;
}

}  // namespace meshpost::test
