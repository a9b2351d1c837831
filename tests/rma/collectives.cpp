// Collectives in every group, compared with a sum on the host: in rank order, first within each
// device. Results are bitwise equal at every rank.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

struct Vec {  // 12 bytes: a slot of a collective holds no whole number of elements
  float x, y, z;
};
struct AddVec {
  MESHPOST_FN Vec operator()(Vec a, Vec b) const { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
};

template <class T>
struct Value {
  MESHPOST_FN static T of(u32 rank, u64 i) { return static_cast<T>(mixed(rank, i) % 1000); }
};
template <>
struct Value<double> {  // sums that depend on their order
  MESHPOST_FN static double of(u32 rank, u64 i) {
    return static_cast<double>(mixed(rank, i) % 100000) * 1e-3 + 1e10 * (rank % 3);
  }
};
template <>
struct Value<Vec> {
  MESHPOST_FN static Vec of(u32 rank, u64 i) {
    return {static_cast<float>(mixed(rank, i) % 1000) * 0.1f, static_cast<float>(rank),
            static_cast<float>(i)};
  }
};

enum class What { all_reduce, reduce, reduce_scatter, broadcast, all_gather };
constexpr What all_of_them[] = {What::all_reduce, What::reduce, What::reduce_scatter,
                                What::broadcast, What::all_gather};

template <class T, class Combine>
struct Collective {
  Communicator where;
  Window<T> data, gathered;
  What what;
  u32 root;  // in the group, modulo its size
  u64 size;
  u64 salt;  // seed of the inputs
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.size(where) == 0) return;
    auto const mine = data.local(self).subspan(0, size);
    RankId const from{root % self.size(where)};
    self.each(size, [&](u64 i) { mine[i] = Value<T>::of(self.id(), salt + i); });
    switch (what) {
      case What::all_reduce: self.all_reduce(where, mine, Combine{}); break;
      case What::reduce: self.reduce(where, mine, Combine{}, from); break;
      case What::reduce_scatter: {
        auto const all = gathered.local(self).subspan(0, size * self.size(where));
        self.each(all.size(), [&](u64 i) { all[i] = Value<T>::of(self.id(), salt + i); });
        self.each(size, [&](u64 i) { mine[i] = Value<T>::of(~self.id(), salt + i); });  // to go
        self.reduce_scatter(where, mine, all, Combine{});
        break;
      }
      case What::broadcast: self.broadcast(where, mine, from); break;
      case What::all_gather: {
        auto const all = gathered.local(self);
        self.each(all.size(), [&](u64 i) { all[i] = Value<T>::of(~self.id(), salt + i); });
        self.all_gather(where, all, mine);
        break;
      }
    }
  }
};

template <class T>
bool same_bits(T const& a, T const& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

WorldOptions options(test::Shape const& shape, Bytes memory, bool apart = false) {
  auto wanted = test::options(shape.ranks, test::devices(shape.spread));
  wanted.collectives = memory;
  wanted.apart = apart;
  return wanted;
}

/// The checks, in a World of any kind.
struct Compared {
  using Groups = std::vector<std::vector<u32>>;

  Compared(WorldOptions const& wanted, test::Shape const& shape)
      : world(wanted), launch(test::launch_of(shape)) {}

  World world;
  Launch launch;
  u64 const salt = std::random_device{}();

  template <class T, class Combine>
  void check(Communicator const& where, Groups const& groups, u32 root,
             std::vector<u64> const& sizes) {
    u64 const most = std::ranges::max(sizes);
    auto const data = world.window<T>(most, Tags{0});
    auto const gathered = world.window<T>(most * world.size(), Tags{0});
    for (auto const what : all_of_them)
      for (u64 const size : sizes) {
        SCOPED_TRACE("what " + std::to_string(static_cast<int>(what)) + ", size " +
                     std::to_string(size) + ", salt " + std::to_string(salt));
        world.run(Collective<T, Combine>{where, data, gathered, what, root, size, salt}, launch);
        for (auto const& group : groups)
          compare<T, Combine>(group, data, gathered, what, root, size);
      }
    world.free(data);
    world.free(gathered);
  }

  template <class T, class Combine>
  void compare(std::vector<u32> const& group, Window<T> const& data, Window<T> const& gathered,
               What what, u32 root, u64 size) {
    u32 const from = group[root % group.size()];
    std::vector<T> sums;
    if (what == What::all_reduce || what == What::reduce || what == What::reduce_scatter)
      for (u64 i = 0; i < size * (what == What::reduce_scatter ? group.size() : 1); ++i)
        sums.push_back(reduced<T, Combine>(group, i));
    for (std::size_t r = 0; r < group.size(); ++r) {
      auto const got = (what == What::all_gather ? gathered : data).read(RankId{group[r]});
      u64 wrong = 0;
      for (u64 i = 0; i < size * (what == What::all_gather ? group.size() : 1); ++i) {
        // The content that reduce leaves at ranks other than the root.
        T expected = Value<T>::of(group[r], salt + i);
        if (what == What::broadcast) expected = Value<T>::of(from, salt + i);
        if (what == What::all_gather) expected = Value<T>::of(group[i / size], salt + i % size);
        if (what == What::all_reduce || (what == What::reduce && group[r] == from))
          expected = sums[i];
        if (what == What::reduce_scatter) expected = sums[r * size + i];
        wrong += !same_bits(got[i], expected);
      }
      EXPECT_EQ(wrong, 0u) << "at rank " << group[r];
    }
  }

  template <class T, class Combine>
  T reduced(std::vector<u32> const& group, u64 i) const {
    auto const device = [this](u32 rank) { return rank / world.ranks_per_device(); };
    std::vector<T> parts;
    for (std::size_t k = 0; k < group.size(); ++k) {
      T const value = Value<T>::of(group[k], salt + i);
      if (k == 0 || device(group[k]) != device(group[k - 1])) parts.push_back(value);
      else parts.back() = Combine{}(parts.back(), value);
    }
    return std::accumulate(parts.begin() + 1, parts.end(), parts.front(), Combine{});
  }

  Groups everybody() const {
    Groups groups(1);
    for (u32 r = 0; r < world.size(); ++r) groups[0].push_back(r);
    return groups;
  }
};

/// With slots of 256 bytes: longer vectors go in steps.
class Collectives : public Compared, public testing::TestWithParam<test::Shape> {
 protected:
  Collectives() : Compared(options(GetParam(), Bytes{1}), GetParam()) {}

  template <class T, class Combine>
  void check(Communicator const& where, Groups const& groups, u32 root = 1) {
    Compared::check<T, Combine>(where, groups, root, {0, 1, 65, 600});
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Collectives, test::all_shapes(), test::shape_name);

TEST_P(Collectives, join_all_ranks) {
  check<double, Sum>(world.communicator(), everybody());
  check<i32, Max>(world.communicator(), everybody(), 5);
  check<u8, Min>(world.communicator(), everybody(), 0);
}

TEST_P(Collectives, take_types_of_the_user) {
  check<Vec, AddVec>(world.communicator(), everybody(), 2);
}

TEST_P(Collectives, join_the_ranks_of_a_device) {
  Groups groups(world.device_count());
  for (u32 r = 0; r < world.size(); ++r) groups[r / world.ranks_per_device()].push_back(r);
  check<double, Sum>(world.device_communicator(), groups, 3);
}

TEST_P(Collectives, join_the_ranks_of_a_split) {
  Groups groups(2);
  for (u32 r = 0; r < world.size(); ++r)
    if (r % 4 != 3) groups[r % 2].push_back(r);
  std::erase_if(groups, [](auto const& group) { return group.empty(); });
  check<double, Sum>(
      world.split(world.communicator(), [](RankId r) { return r % 4 == 3 ? -1 : i64{r % 2}; }),
      groups);
}

// With barriers between: halves of the gathering area alternate. Reductions and barriers of `whole`
// count ranks in the same words.
struct Repeated {
  Communicator whole, split;
  Window<u64> words;
  u32 rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const word = words.local(self);
    u64 const n = self.size(whole);
    for (u32 round = 0; round < rounds; ++round) {
      if (self.thread() == 0) word[0] = self.id(whole) + round;
      if (round % 3 == 0) self.barrier(whole);
      self.all_reduce(whole, word, Sum{});
      findings.add(self, word[0] != n * (n - 1) / 2 + n * round);
      if (round % 5 == 0) self.barrier(split);
      self.sync();
      if (self.thread() == 0) word[0] = self.id(split) == 0 ? round : 0;
      self.broadcast(split, word, RankId{0});
      findings.add(self, word[0] != round);
      self.sync();
    }
  }
};

/// With slots of some 100 KiB: sizes near every bound at which a collective changes its way.
class LongCollectives : public Compared,
                        public testing::TestWithParam<std::tuple<test::Shape, bool>> {
 protected:
  LongCollectives()
      : Compared(options(std::get<0>(GetParam()), Bytes{u64{3} << 20}, std::get<1>(GetParam())),
                 std::get<0>(GetParam())) {}

  template <class T, class Combine>
  void check(Communicator const& where, Groups const& groups, u32 root) {
    std::mt19937_64 random(salt);
    u64 const two_hops = (u64{64} << 10) / sizeof(T), by_all = (u64{8} << 10) / sizeof(T);
    std::vector<u64> sizes{two_hops + 1, random() % 512 + 1};
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    u64 const step = where.slot / sizeof(T);
    for (u64 const size : {by_all, by_all + 1, two_hops, step + 1}) sizes.push_back(size);
    for (u64 const most : {u64{8192}, 2 * step}) sizes.push_back(random() % most + 1);
#else
    sizes.push_back(by_all + 1);
#endif
    Compared::check<T, Combine>(where, groups, root, sizes);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Shapes, LongCollectives,
    testing::Combine(testing::Values(test::Shape{test::Spread::several_devices, 1, {0, 1, 1}},
                                     test::Shape{test::Spread::several_devices, 3, {0, 1, 1}},
                                     test::Shape{test::Spread::several_devices, 2,
                                                 test::box_threads}),
                     testing::Bool()),
    [](auto const& of) {
      testing::TestParamInfo<test::Shape> const shape(std::get<0>(of.param), of.index);
      return test::shape_name(shape) + (std::get<1>(of.param) ? "_apart" : "");
    });

TEST_P(LongCollectives, join_all_ranks) {
  check<double, Sum>(world.communicator(), everybody(), 1);
}

TEST_P(LongCollectives, take_types_of_the_user) {
  check<Vec, AddVec>(world.communicator(), everybody(), 2);
}

// One rank of device 0 with all of the other devices, and the rest of device 0.
TEST_P(LongCollectives, join_uneven_groups) {
  u32 const each = world.ranks_per_device();
  Groups groups(each > 1 ? 2 : 1);
  for (u32 r = 0; r < world.size(); ++r) groups[r == 0 || r >= each ? 0 : 1].push_back(r);
  check<double, Sum>(
      world.split(world.communicator(), [&](RankId r) { return i64{r == 0 || r >= each ? 0 : 1}; }),
      groups, 1);
}

TEST_P(Collectives, follow_each_other_without_mixing) {
  auto const findings = test::make_findings(world);
  auto const split = world.split(world.communicator(), [](RankId r) { return i64{r % 2}; });
  auto const words = world.window<u64>(1);
  world.run(Repeated{world.communicator(), split, words, 100, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
  // One group has all ranks of a device and one of the next: there the last one counts for all.
  u32 const first = world.ranks_per_device();
  auto const uneven =
      world.split(world.communicator(), [&](RankId r) { return r.value <= first ? 0 : 1; });
  world.run(Repeated{uneven, split, words, 40, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

// On GPUs with so many ranks, the last one of a device tells the others. On CPU devices it always
// does.
TEST(CollectivesOnGpus, of_many_ranks_follow_each_other) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs GPUs";
  World world(test::options(80, test::devices(test::Spread::several_devices)));
  Launch launch;
  launch.threads = test::warp_threads;
  auto const findings = test::make_findings(world);
  auto const split = world.split(world.communicator(), [](RankId r) { return i64{r % 2}; });
  world.run(Repeated{world.communicator(), split, world.window<u64>(1), 60, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

}  // namespace
}  // namespace meshpost
