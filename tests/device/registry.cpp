// Devices named by a text, errors for texts that name none, and devices after fork().
#include "meshpost/device/backend.hpp"
#include "support/child.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;
using test::status_in_child;

TEST(Devices, of_a_cpu_are_as_many_as_are_asked_for) {
  EXPECT_EQ(open_devices("cpu").size(), 2u);
  EXPECT_EQ(open_devices("cpu:1").size(), 1u);
  auto const seven = open_devices("cpu:7");
  ASSERT_EQ(seven.size(), 7u);
  EXPECT_EQ(seven[6]->name(), "cpu:6");
  EXPECT_EQ(seven[6]->kind(), "cpu");
  EXPECT_EQ(seven[0], open_devices("cpu:3")[0]) << "a device is opened once";
  auto const& info = seven[0]->info();
  EXPECT_FALSE(info.model.empty());
  EXPECT_TRUE(info.memory > 0 && info.processors > 0 && info.default_ranks >= 16 &&
              info.default_threads == 1 && info.max_threads == 1024);
}

TEST(Devices, that_do_not_exist_are_refused_with_what_there_is) {
  struct Case {
    char const* spec;
    char const* cause;
    char const* remedy;
  };
  for (auto const& [spec, cause, remedy] : {
           Case{"tpu", "no kind of device called 'tpu'", "this build has cpu"},
           Case{"tpu:1", "'tpu'", "this build has cpu"},
           Case{":2", "called ''", "this build has"},
           Case{"CPU:2", "'CPU'", "this build has"},
           Case{"cpu:0", "0 CPU devices; there may be 1 to 1024", "cpu:4 is four"},
           Case{"cpu:1025", "1025 CPU devices", "cpu:4 is four"},
           Case{"cpu:", "nothing follows the colon", "cpu:4 is four"},
           Case{"cpu:two", "'two' is not a number", "cpu:4 is four"},
           Case{"cpu:-1", "'-1' is not a number", "cpu:4 is four"},
           Case{"cpu:1,2", "'1,2' is not a number", "cpu:4 is four"},
           Case{"cpu:99999999999999999999", "is not a number", "cpu:4"},
           Case{" cpu:2", "' cpu'", "this build has"},
       })
    EXPECT_TRUE(says(error_of([spec = spec] { open_devices(spec); }), Kind::bad_argument,
                     {"devices", cause, remedy}))
        << spec;
}

TEST(Devices, of_a_kind_that_the_build_or_the_host_lacks_are_refused_with_the_reason) {
  bool built = true;
  try {
    backend("cuda");
  } catch (Error const& error) {
    built = false;
    EXPECT_TRUE(says(error, Kind::bad_argument, {"'cuda'", "this build has cpu", "nvcc"}));
  }
  if (!built || backend("cuda").count() != 0) return;
  for (auto const* const spec : {"cuda", "cuda:0", "cuda:0,1"})
    EXPECT_TRUE(says(error_of([spec] { open_devices(spec); }), Kind::bad_argument,
                     {"there is no cuda device", "use cpu:N"}))
        << spec;
}

TEST(Devices, say_of_their_kind_what_it_can_and_unknown_kinds_can_least) {
  auto const host = host_backend().traits();
  EXPECT_TRUE(host.in_host_memory && host.on_host_cores &&
              host.extra_polls == ExtraPolls::has_news);
  EXPECT_EQ(host_backend().count(), ~0u);
  EXPECT_TRUE(traits_of(host_backend().kind()).in_host_memory);
  EXPECT_TRUE(host_backend().open(0)->in_host_memory());
  for (auto const* const kind : {"unknown", ""}) {
    auto const traits = traits_of(kind);
    EXPECT_FALSE(traits.in_host_memory || traits.on_host_cores) << kind;
    EXPECT_EQ(traits.extra_polls, ExtraPolls::none) << kind;
  }
}

TEST(Devices, of_the_default_kind_are_those_of_a_program_that_names_none) {
  auto& chosen = default_backend();
  EXPECT_EQ(open_devices("").front()->kind(), chosen.kind());
  EXPECT_TRUE(chosen.preferred() || &chosen == &host_backend());
}

TEST(Devices, are_registered_once_by_name) {
  struct Fake : Backend {
    std::string_view kind() const override { return "cpu"; }
    u32 count() override { return 0; }
    std::shared_ptr<Device> open(u32) override { return nullptr; }
    std::unique_ptr<AddressSpace> reserve(SpaceDevices const&) override { return nullptr; }
    std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const&) override { return nullptr; }
    void connect(std::vector<std::shared_ptr<Device>> const&) override {}
  };
  EXPECT_TRUE(says(error_of([] { register_backend(std::make_unique<Fake>()); }), Kind::bad_argument,
                   {"'cpu' is registered already"}));
}

struct Nothing {
  void operator()(Rank&) const {}
};

TEST(Fork, after_a_world_makes_every_call_of_the_child_fail_and_leaves_the_parent_alone) {
  World world(test::options(2, "cpu:2"));
  auto const window = world.window<u32>(4);
  world.run(Nothing{});
  EXPECT_EQ(status_in_child([] { World const mine(test::options(1, "cpu:1")); }), 100);
  EXPECT_EQ(status_in_child([&] { world.run(Nothing{}); }), 100);
  EXPECT_EQ(status_in_child([&] { world.window<u32>(1); }), 100);
  EXPECT_EQ(status_in_child([&] { world.free(window); }), 100);
  EXPECT_EQ(status_in_child([&] { window.read(RankId{0}); }), 100);
  EXPECT_EQ(status_in_child([&] { window.wait(Tag{0}, 1); }), 100);
  EXPECT_EQ(status_in_child([&] { window.notify(RankId{0}, Tag{0}); }), 100);
  EXPECT_EQ(status_in_child([&] { window.write(RankId{0}, 0, std::vector<u32>{1}); }), 100);
  EXPECT_EQ(
      status_in_child([&] { world.split(world.communicator(), [](RankId) { return i64{0}; }); }),
      100);
  EXPECT_EQ(status_in_child([] { open_devices("cpu"); }), 100);
  EXPECT_EQ(status_in_child([] {}), 0);
  world.run(Nothing{});
  EXPECT_EQ(window.read(RankId{3}), std::vector<u32>(4, 0));
}

// Forks while the World's own thread, which sometimes holds locks, polls the runs.
TEST(Fork, amid_runs_makes_every_call_of_the_child_fail) {
  World world(test::options(2, "cpu:2"));
  auto const window = world.window<u32>(4);
  for (u32 turn = 0; turn < 20; ++turn) {
    auto run = world.launch(Nothing{});
    EXPECT_EQ(status_in_child([&] { run.done(); }), 100);
    EXPECT_EQ(status_in_child([&] { run.wait(); }), 100);
    EXPECT_EQ(status_in_child([&] { window.read(RankId{0}); }), 100);
    EXPECT_EQ(status_in_child([&] { auto const dropped = std::move(run); }), 0);
    run.wait();
  }
}

TEST(Fork, lets_the_child_drop_what_it_inherited) {
  auto world = std::make_unique<World>(test::options(1, "cpu:1"));
  EXPECT_EQ(status_in_child([&] { world.reset(); }), 0);
  world->run(Nothing{});
}

TEST(Fork, before_the_first_device_leaves_the_child_free_to_use_them) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads can't be started after fork() under TSan";
#endif
  // This process has used devices already, so a new process is needed: it forks, and the child runs
  // a World.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(_Exit(status_in_child([] { World(test::options(1, "cpu:1")).run(Nothing{}); })),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace meshpost
