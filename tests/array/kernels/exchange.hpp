#pragma once
// Random exchanges in a kernel, and what must come of them.
#include <meshpost/array/exchange.hpp>
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <random>

#include "support/worlds.hpp"

namespace meshpost::test {

/// In each step, all elements change, and then go to the halos. Each device's array holds its part.
struct HaloSteps {
  Exchange<u64> exchange;
  Window<u64> values, indices;  // of all elements of a part, with its halo
  Window<u64> own;              // number of own elements, and of all
  Window<u32> wrong, delays;
  u64 seed;
  u32 steps;

  MESHPOST_FN static u64 value(u64 seed, u64 index, u32 step) { return mixed(seed, index, step); }

  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = own.local(self);
    auto const x = values.local(self).subspan(0, mine[1]);
    auto const index = indices.local(self);
    u64 const ranks = self.local_size(), me = self.local_id();
    RankExchange<u64> halo(self, exchange);
    for (u32 step = 0; step < steps; ++step) {
      // Others come first, now and then.
      for (u64 k = mixed(seed, self.id(), step) % 4; k > 0; --k) self.test(delays, Tag{0});
      u64 const from = mine[0] * me / ranks, to = mine[0] * (me + 1) / ranks;
      self.each(to - from, [&](u64 i) { x[from + i] = value(seed, index[from + i], step); });
      halo.start(x);
      halo.finish(x);
      self.each(mine[1], [&](u64 i) {  // by all ranks: each must see all
        if (x[i] != value(seed, index[i], step)) wrong.local(self)[0] = step + 1;
      });
      self.sync();  // or else another thread would change what this one reads
      self.barrier(self.device_communicator());
    }
  }
};

/// Halos go to their owners, who combine them in the order of the parts.
struct BackSteps {
  Exchange<u64> exchange;
  Window<u64> values, indices, own;
  u64 seed;
  u32 steps;

  MESHPOST_FN static u64 given(u64 seed, u32 part, u64 index, u32 step) {
    return mixed(seed, part, index, step);
  }
  MESHPOST_FN static u64 combined(u64 old, u64 come) { return old * 31 + come; }

  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = own.local(self);
    auto const x = values.local(self).subspan(0, mine[1]);
    auto const index = indices.local(self);
    u64 const halo = mine[1] - mine[0], ranks = self.local_size(), me = self.local_id();
    RankExchange<u64> back(self, exchange);
    for (u32 step = 0; step < steps; ++step) {
      u64 const from = mine[0] + halo * me / ranks, to = mine[0] + halo * (me + 1) / ranks;
      self.each(to - from,
                [&](u64 i) { x[from + i] = given(seed, self.device(), index[from + i], step); });
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

/// Windows of a part's size each, filled for the parts of this process.
inline void fill_parts(World const& world, Plan const& plan, Window<u64> const& indices,
                       Window<u64> const& own) {
  for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part) {
    auto const& one = plan.of(part);
    RankId const rank{part * world.ranks_per_device()};
    std::vector<u64> all;
    for (u64 place = 0; place < one.own; ++place)
      all.push_back(plan.distribution().index_of(part, place));
    all.insert(all.end(), one.halo.begin(), one.halo.end());
    if (!all.empty()) indices.write(rank, 0, std::span<u64 const>(all));
    u64 const sizes[] = {one.own, one.size()};
    own.write(rank, 0, std::span<u64 const>(sizes));
  }
}

/// All that is wrong after random exchanges with this plan on this World; nothing: empty.
/// Collective.
inline std::string wrong_exchanges(World& world, Plan const& plan, u64 seed,
                                   Launch const& launch = {}) {
  u64 const most = 2 * plan.distribution().size() + 1;  // of any part, with its halo
  auto const window = [&](u64 count) { return world.window<u64>(shared_parts(world, count)); };
  auto const values = window(most), indices = window(most), own = window(2);
  auto const wrong = world.window<u32>(shared_parts(world, 1), Tags{0});
  auto const delays = world.window<u32>(1, Tags{1});
  fill_parts(world, plan, indices, own);
  u32 const steps = 1 + static_cast<u32>(seed % 7);
  auto const exchange = make_exchange<u64>(world, plan);
  auto const back = make_exchange<u64>(world, plan.reverse());
  std::string text;
  auto const first_rank = [&](u32 part) { return RankId{part * world.ranks_per_device()}; };
  for (u32 again = 0; again < 2; ++again) {  // the same memory in another run
    world.run(HaloSteps{exchange, values, indices, own, wrong, delays, seed + again, steps},
              launch);
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part)
      if (auto const step = wrong.read(first_rank(part))[0]; step != 0)
        text += "part " + std::to_string(part) + " had another halo in step " +
                std::to_string(step - 1) + "\n";
    std::vector<u64> const zeros(most);
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part)
      values.write(first_rank(part), 0, std::span<u64 const>(zeros));
    world.run(BackSteps{back, values, indices, own, seed, steps}, launch);
    for (u32 part = plan.first_part(); part < plan.first_part() + plan.part_count(); ++part) {
      auto const& one = plan.of(part);
      std::vector<u64> expected(one.own);
      for (u32 step = 0; step < steps; ++step)
        for (auto const& entry : one.sends)
          for (u64 i = 0; i < entry.count; ++i) {
            u64 const place = one.sent[entry.offset + i];
            u64 const index = plan.distribution().index_of(part, place);
            expected[place] = BackSteps::combined(expected[place],
                                                  BackSteps::given(seed, entry.part, index, step));
          }
      auto const come = values.read(first_rank(part));
      if (!std::equal(expected.begin(), expected.end(), come.begin()))
        text += "part " + std::to_string(part) + " combined something else\n";
    }
  }
  for (auto const& one : {exchange, back}) free_exchange(world, one);
  world.free(values), world.free(indices), world.free(own), world.free(wrong), world.free(delays);
  return text;
}

}  // namespace meshpost::test
