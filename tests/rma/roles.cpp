// Ranks of a device draw their tasks by ticket: no order of draws makes a deadlock or a wrong byte.
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::mixed;
using test::says;

enum class Trouble { none, fails, sends_nothing, packs_nothing, waits_to_send, packs_twice };

// A ring of devices. Each step, each device sends numbers made of its state and of what it got.
struct Mix {
  Window<u64> state, halo, outbox, inbox;  // state, halo, inbox: two copies
  RoleWords words;
  Window<u32> delays;
  u32 size, length, packers, pieces, steps;  // length: of a message
  u64 seed;
  Trouble trouble = Trouble::none;

  MESHPOST_FN static u64 sent(u64 value, u64 got, u32 step, u64 i) {
    return mixed(value, got, step, i);
  }
  MESHPOST_FN static u64 changed(u64 value, u64 i) { return mixed(value, i); }

  MESHPOST_FN void send(Rank& self, RolesByTicket& roles, RoleTask const& task, u32 step) const {
    u32 const devices = self.device_count(), side = task.index;
    auto const now = state.local(self).subspan(u64{step % 2} * size, size);
    auto const got = halo.local(self).subspan((u64{step % 2} * 2 + side) * length, length);
    auto const out = outbox.local(self).subspan(u64{side} * length, length);
    u64 const from = u64{task.part} * length / packers, to = u64{task.part + 1} * length / packers;
    self.each(to - from, [&](u64 k) {
      u64 const i = from + k;
      out[i] = sent(now[i % size], got[i], step, i);
    });
    if (trouble == Trouble::packs_nothing) return;
    if (trouble == Trouble::waits_to_send) roles.wait(Tag{0});
    bool const last = roles.packed(task);
    if (trouble == Trouble::packs_twice) roles.packed(task);
    bool const culprit = self.device() == devices - 1 && step == 1;
    if (!last || (culprit && trouble == Trouble::sends_nothing)) return;
    if (culprit && trouble == Trouble::fails) self.fail("the input is odd");
    u32 const next = (self.device() + (side == 0 ? devices - 1 : 1)) % devices;
    RankId const target{next * self.local_size()};
    u32 const tag = 1 - side;  // it comes from the other side there
    self.put(inbox.at(target, (u64{step % 2} * 2 + tag) * length), out);
    roles.notify(target, Tag{tag});
    self.flush(inbox);
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const devices = self.device_count();
    RolesByTicket roles(self, words, {2, packers, pieces, 2});
    u64 draws = 0;
    for (u32 step = 0; step < steps; ++step)
      for (;;) {
        for (u64 k = mixed(seed, self.id(), ++draws) % 5; k > 0; --k)  // others come first
          self.test(delays, Tag{0});
        auto const task = roles.next();
        if (!task) break;
        switch (task.role) {
          case HaloRole::receive:
            for (u32 side = 0; side < 2; ++side) {
              u32 const from = (self.device() + (side == 0 ? devices - 1 : 1)) % devices;
              roles.wait(Tag{side}, RankId{from * self.local_size()});
            }
            break;
          case HaloRole::send: send(self, roles, task, step); break;
          case HaloRole::interior: {
            auto const now = state.local(self).subspan(u64{step % 2} * size, size);
            auto const next = state.local(self).subspan(u64{1 - step % 2} * size, size);
            self.each(size, [&](u64 i) {
              if (i % pieces == task.index) next[i] = changed(now[i], i);
            });
            break;
          }
          case HaloRole::unpack: {
            u64 const side = task.index;
            auto const came = inbox.local(self).subspan((step % 2 * 2 + side) * length, length);
            auto const next =
                halo.local(self).subspan(((1 - step % 2) * 2 + side) * length, length);
            self.each(length, [&](u64 i) { next[i] = came[i]; });
            break;
          }
          case HaloRole::none: break;
        }
      }
  }
};

// All devices' states and halos in one piece, on the host.
struct Reference {
  std::vector<std::vector<u64>> state, halo;
  Reference(Mix const& mix, u32 devices) {
    for (u32 d = 0; d < devices; ++d) {
      state.emplace_back(mix.size);
      for (u64 i = 0; i < mix.size; ++i) state[d][i] = mixed(mix.seed, d, i);
      halo.emplace_back(u64{2} * mix.length, 0);
    }
  }
  void run(Mix const& mix) {
    auto const devices = static_cast<u32>(state.size());
    for (u32 step = 0; step < mix.steps; ++step) {
      auto const old = halo;
      for (u32 d = 0; d < devices; ++d)
        for (u32 side = 0; side < 2; ++side)
          for (u64 i = 0; i < mix.length; ++i) {
            u32 const next = (d + (side == 0 ? devices - 1 : 1)) % devices;
            halo[next][(1 - side) * u64{mix.length} + i] =
                Mix::sent(state[d][i % mix.size], old[d][side * u64{mix.length} + i], step, i);
          }
      for (auto& values : state)
        for (u64 i = 0; i < values.size(); ++i) values[i] = Mix::changed(values[i], i);
    }
  }
};

class Roles : public testing::TestWithParam<test::Shape> {
 protected:
  World world{test::options(GetParam().ranks, test::devices(GetParam().spread))};
  Launch launch = test::launch_of(GetParam());
  test::Listener listener;

  static Mix make(World& world, u64 seed) {
    auto const draw = [&](u64 what, u64 most) {
      return 1 + static_cast<u32>(mixed(seed, what) % most);
    };
    Mix mix{};
    mix.size = draw(1, 40), mix.length = draw(2, 300), mix.packers = draw(3, 5);
    mix.pieces = draw(4, 9), mix.steps = 2 * draw(5, 4), mix.seed = seed;
    auto const shared = [&](u64 count, char const* name) {
      return world.window<u64>(shared_parts(world, count), Tags{0}, name);
    };
    mix.state = shared(u64{2} * mix.size, "state"), mix.halo = shared(u64{4} * mix.length, "halo");
    mix.outbox = shared(u64{2} * mix.length, "outbox");
    mix.inbox = shared(u64{4} * mix.length, "inbox");
    mix.words = role_words(world, 2), mix.delays = world.window<u32>(1, Tags{1}, "delays");
    return mix;
  }
  void expect_right(World& in, Mix const& mix) const {
    u32 const devices = in.device_count(), each = in.ranks_per_device();
    Reference reference(mix, devices);
    for (u32 d = 0; d < devices; ++d) {
      mix.state.write(RankId{d * each}, 0, reference.state[d]);
      mix.halo.write(RankId{d * each}, 0, reference.halo[d]);
    }
    in.run(mix, launch);
    reference.run(mix);
    for (u32 d = 0; d < devices; ++d) {  // the number of steps is even
      auto state = mix.state.read(RankId{d * each}), halo = mix.halo.read(RankId{d * each});
      state.resize(mix.size), halo.resize(u64{2} * mix.length);
      EXPECT_TRUE(state == reference.state[d] && halo == reference.halo[d])
          << "device " << d << ", seed " << mix.seed;
    }
  }
  static void free(World& world, Mix const& mix) {
    for (auto const& window : {mix.state, mix.halo, mix.outbox, mix.inbox}) world.free(window);
    world.free(mix.words.words), world.free(mix.delays);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Roles,
                         testing::Values(test::Shape{test::Spread::one_device, 1, {0, 1, 1}},
                                         test::Shape{test::Spread::one_device, 2, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 1, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 2, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 3, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 3,
                                                     test::warp_threads}),
                         test::shape_name);

TEST_P(Roles, in_any_order_of_draws_give_what_one_piece_gives) {
  for (u64 seed = 1; seed <= (test::sanitized ? 5 : 30); ++seed) {
    auto const mix = make(world, seed);
    expect_right(world, mix);
    expect_right(world, mix);  // tickets start again
    free(world, mix);
  }
}

TEST_P(Roles, a_device_that_fails_ends_the_run_and_the_next_one_works) {
  auto mix = make(world, 7);
  mix.trouble = Trouble::fails;
  EXPECT_TRUE(
      says(error_of([&] { world.run(mix, launch); }), Kind::kernel_failed, {"the input is odd"}));
  mix.trouble = Trouble::none;
  expect_right(world, mix);
}

TEST_P(Roles, a_message_that_is_not_sent_is_a_deadlock_that_names_the_sender) {
  auto mix = make(world, 8);
  mix.trouble = Trouble::sends_nothing;
  u32 const culprit = (world.device_count() - 1) * world.ranks_per_device();
  EXPECT_TRUE(
      says(error_of([&] { world.run(mix, launch); }), Kind::deadlock,
           {"waits until its word is == 2, it is 0",
            "rank " + std::to_string(culprit) + ", which is expected to store it, waits itself"}));
  mix.trouble = Trouble::none;
  expect_right(world, mix);
}

TEST_P(Roles, misuse_is_an_error) {
  auto const expect = [&](Mix const& mix, std::string_view text) {
    EXPECT_TRUE(
        says(error_of([&] { world.run(mix, launch); }), Kind::kernel_failed, {"roles in", text}));
  };
  auto mix = make(world, 9);
  auto wrong = mix;
  wrong.packers = 0;
  expect(wrong, "RoleTasks::packers is 0");
  wrong = mix;
  wrong.pieces = ~0u;
  expect(wrong, "the number of all RoleTasks is");
  wrong = mix;
  wrong.words = role_words(world, 1);
  expect(wrong, "RoleTasks::messages is 2");
  wrong.words = RoleWords{};
  expect(wrong, "never created");
  wrong.words = {world.window<u32>(1), 2};
  expect(wrong, "make them with role_words()");
  wrong = mix;
  wrong.trouble = Trouble::packs_nothing;
  expect(wrong, "without packed()");
  wrong.trouble = Trouble::packs_twice;
  expect(wrong, "or twice in one");
  wrong.trouble = Trouble::waits_to_send;
  expect(wrong, "outside of the task of HaloRole::receive");
  EXPECT_TRUE(says(error_of([&] { role_words(world, 65537); }), Kind::bad_argument, {"65536"}));
  expect_right(world, mix);
}

TEST_P(Roles, keep_the_delivery_rule) {
  if (test::on_gpus() || test::devices().find('*') != std::string::npos) GTEST_SKIP();
  if (std::getenv("MESHPOST_REACH") || std::getenv("MESHPOST_LANES")) GTEST_SKIP();
  auto wanted = test::options(GetParam().ranks, test::devices(GetParam().spread));
  wanted.check_delivery = true;
  World checked(wanted);
  for (u64 seed = 40; seed < 45; ++seed) expect_right(checked, make(checked, seed));
}

}  // namespace
}  // namespace meshpost
