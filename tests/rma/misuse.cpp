// An error for each misuse by a kernel: it names the rank, the operation, the value, its limit and
// a remedy.
#include "support/misuse.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

enum class Wrong {
  target,
  tag,
  offset,
  size,
  default_window,
  default_window_wait,
  null_source,
  unaligned_word,
  unaligned_wait,
  local_subspan,
  remote_subspan,
  remote_subspan_of_invalid,
  put_larger_than_span,
  wait_tag,
  test_tag,
  notify_target,
  get_range,
  get_size,
  get_null,
  stop_without_start,
  too_many_timers,
  wait_until_nothing,
  value_out_of_range,
  value_into_nothing,
  outside_of_group,
  root,
  gather_too_small,
  scatter_too_large,
  counters_of_default_window,
  overflowing_offset,
  huge_wait,
  unprepared_put,
  unprepared_wait,
  prepared_tag,
  prepared_offset,
  prepared_target_of_notify,
  prepared_count
};

struct Misuse {
  Wrong wrong;
  Window<u32> window;  // 4 elements, 2 tags
  Communicator evens;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 1) return;  // the others have ended, or end, well
    auto const mine = window.local(self);
    RankId const other{0};
    switch (wrong) {
      case Wrong::target: return self.put_notify(window.at(RankId{99}), mine, Tag{0});
      case Wrong::tag: return self.put_notify(window.at(other), mine, Tag{2});
      case Wrong::offset: return self.put(window.at(other, 5), mine.subspan(0, 1));
      case Wrong::overflowing_offset: return self.put(window.at(other, ~u64{0} - 1), mine);
      case Wrong::size: return self.put_notify(window.at(other, 1), mine, Tag{0});
      case Wrong::default_window: return self.notify(Window<u32>(), other, Tag{0});
      case Wrong::default_window_wait: return self.wait(Window<u32>(), Tag{0});
      case Wrong::null_source: return self.put(window.at(other), LocalSpan<u32 const>(nullptr, 3));
      case Wrong::unaligned_word: {
        Window<u32> const shifted = odd(window);
        return self.put_value(shifted.at(other), 1u);
      }
      case Wrong::unaligned_wait:
        return self.wait_until(
            LocalSpan<u32>(reinterpret_cast<u32*>(reinterpret_cast<char*>(mine.data()) + 2), 1),
            Compare::equal, 1u);
      case Wrong::local_subspan: return self.put(window.at(other), mine.subspan(2, 3));
      case Wrong::remote_subspan:
        return self.put(window.at(other).subspan(1, 2).subspan(2, 1), mine.subspan(0, 1));
      case Wrong::remote_subspan_of_invalid:
        return self.put(window.at(other).subspan(0, 2).subspan(0, 4).subspan(1, 1),
                        mine.subspan(0, 1));
      case Wrong::put_larger_than_span:
        return self.put(window.at(other).subspan(0, 2), mine.subspan(0, 3));
      case Wrong::wait_tag: return self.wait(window, Tag{7});
      case Wrong::test_tag: self.test(window, Tag{8}); return;
      case Wrong::notify_target: return self.notify(window, RankId{1000}, Tag{0});
      case Wrong::get_range: return self.get(mine, window.at(other, 2));
      case Wrong::get_size: return self.get(mine, window.at(other).subspan(0, 3));
      case Wrong::get_null: return self.get(LocalSpan<u32>(nullptr, 1), window.at(other));
      case Wrong::stop_without_start: return self.stop_timer();
      case Wrong::too_many_timers:
        for (int i = 0; i < 65; ++i) self.start_timer();
        return;
      case Wrong::wait_until_nothing: return self.wait_until(mine.subspan(4), Compare::equal, 0u);
      case Wrong::value_out_of_range: return self.put_value(window.at(other, 4), 1u);
      case Wrong::value_into_nothing: return self.put_value(window.at(other).subspan(1, 0), 1u);
      case Wrong::outside_of_group: return self.barrier(evens);
      case Wrong::root: return self.broadcast(self.state().tags.communicator, mine, RankId{77});
      case Wrong::gather_too_small:
        return self.all_gather(self.state().tags.communicator, mine, mine);
      case Wrong::scatter_too_large:
        return self.reduce_scatter(self.state().tags.communicator, mine, mine, Sum{});
      case Wrong::counters_of_default_window:
        return self.put_notify(window.at(other), mine, Window<u32>(), Tag{0});
      case Wrong::huge_wait: return self.wait(window, Tag{0}, ~0u);
      case Wrong::unprepared_put: return self.put_notify(PreparedPut());
      case Wrong::unprepared_wait: return self.wait(PreparedWait());
      case Wrong::prepared_tag: self.prepare_put_notify(window.at(other), mine, Tag{2}); return;
      case Wrong::prepared_offset:
        self.prepare_put_notify(window.at(other, 1), mine, Tag{0});
        return;
      case Wrong::prepared_target_of_notify: self.prepare_notify(window, RankId{9}, Tag{0}); return;
      case Wrong::prepared_count: self.prepare_wait(window, Tag{0}, ~0u); return;
    }
  }
  MESHPOST_FN static Window<u32> odd(Window<u32> const& window) {
    WindowInfo info = window.info();
    info.offset += 2;
    return Window<u32>(info);
  }
};

using Case = test::MisuseCase<Wrong>;

class MisuseOf : public testing::TestWithParam<Case> {};
std::vector<Case> cases() {
  return {
      {Wrong::target,
       "target_rank",
       {"put_notify, window 'box', in", "rank 99 does not exist", "of 4 ranks",
        "use ranks from 0 to 3"}},
      {Wrong::tag,
       "tag",
       {"put_notify, window 'box', in", "tag 2 does not exist", "window of 2 tags",
        "use tags from 0 to 1"}},
      {Wrong::offset,
       "offset",
       {"put, window 'box', in", "element 5 was named in a part of 4", "stay inside"}},
      {Wrong::overflowing_offset,
       "overflowing_offset",
       {"put, window 'box', in", "elements 18446744073709551614", "part of 4"}},
      {Wrong::size, "size", {"put_notify, window 'box', in", "elements 1 to 4", "part of 4"}},
      {Wrong::default_window, "default_window", {"notify", "never created", "World::window"}},
      {Wrong::default_window_wait, "default_window_in_wait", {"wait", "never created"}},
      {Wrong::null_source,
       "null_source",
       {"put, window 'box', in", "3 elements", "null pointer", "points to memory"}},
      {Wrong::unaligned_word,
       "unaligned_word",
       {"put_value, window 'box', in", "not a multiple of 4", "align"}},
      {Wrong::unaligned_wait,
       "unaligned_polled_word",
       {"wait_until", "not a multiple of 4", "align"}},
      {Wrong::local_subspan,
       "local_subspan",
       {"put, window 'box', in", "subspan that leaves its span", "check"}},
      {Wrong::remote_subspan,
       "remote_subspan",
       {"put, window 'box', in", "subspan that leaves its span", "check"}},
      {Wrong::remote_subspan_of_invalid,
       "subspan_of_an_invalid_subspan",
       {"put, window 'box', in", "subspan that leaves its span"}},
      {Wrong::put_larger_than_span,
       "put_larger_than_its_target",
       {"put, window 'box', in", "3 elements were given where 2 fit"}},
      {Wrong::wait_tag,
       "tag_in_wait",
       {"wait, window 'box', in", "tag 7 does not exist", "2 tags"}},
      {Wrong::test_tag,
       "tag_in_test",
       {"test, window 'box', in", "tag 8 does not exist", "2 tags"}},
      {Wrong::notify_target,
       "target_of_notify",
       {"notify, window 'box', in", "rank 1000 does not exist", "4 ranks"}},
      {Wrong::get_range, "range_of_get", {"get, window 'box', in", "elements 2 to 5", "part of 4"}},
      {Wrong::get_size,
       "size_of_get",
       {"get, window 'box', in", "4 elements were given where 3 fit"}},
      {Wrong::get_null,
       "null_target_of_get",
       {"get, window 'box', in", "1 elements", "null pointer"}},
      {Wrong::stop_without_start,
       "stop_timer",
       {"timer", "stop_timer() without start_timer()", "start it first"}},
      {Wrong::too_many_timers, "many_timers", {"timer", "more than 64 intervals", "time fewer"}},
      {Wrong::wait_until_nothing,
       "polling_nothing",
       {"wait_until", "1 elements were given where 0 fit"}},
      {Wrong::value_out_of_range,
       "range_of_put_value",
       {"put_value, window 'box', in", "element 4 was named", "part of 4"}},
      {Wrong::value_into_nothing,
       "put_value_into_nothing",
       {"put_value, window 'box', in", "where 0 fit"}},
      {Wrong::outside_of_group,
       "barrier_of_others",
       {"barrier", "in no group", "color of 0 or more"}},
      {Wrong::root, "root_of_broadcast", {"broadcast", "rank 77 does not exist", "4 ranks"}},
      {Wrong::gather_too_small, "size_of_all_gather", {"all_gather", "16 elements", "where 4 fit"}},
      {Wrong::scatter_too_large,
       "size_of_reduce_scatter",
       {"reduce_scatter", "4 elements", "where 16 fit"}},
      {Wrong::counters_of_default_window,
       "counters_of_default_window",
       {"put_notify", "never created"}},
      {Wrong::huge_wait,
       "huge_wait",
       {"wait, window 'box', in", "the count is 4294967295", "0 to 1073741824"}},
      {Wrong::unprepared_put, "unprepared_put", {"notify", "has not prepared", "documentation"}},
      {Wrong::unprepared_wait, "unprepared_wait", {"wait", "has not prepared", "documentation"}},
      {Wrong::prepared_tag,
       "tag_when_prepared",
       {"put_notify, window 'box', in", "tag 2 does not exist"}},
      {Wrong::prepared_offset,
       "range_when_prepared",
       {"put_notify, window 'box', in", "elements 1 to 4", "part of 4"}},
      {Wrong::prepared_target_of_notify,
       "target_when_prepared",
       {"notify, window 'box', in", "rank 9 does not exist"}},
      {Wrong::prepared_count, "count_when_prepared", {"wait, window 'box', in", "4294967295"}},
  };
}
INSTANTIATE_TEST_SUITE_P(Kernels, MisuseOf, testing::ValuesIn(cases()), test::misuse_name<Wrong>);

TEST_P(MisuseOf, is_named_with_its_limit_and_a_remedy) {
  test::Listener const listener;
  World world(test::options(4, test::devices(test::Spread::one_device)));
  auto const evens =
      world.split(world.communicator(), [](RankId r) { return r % 2 == 0 ? 0 : -1; });
  auto const window = world.window<u32>(4, Tags{2}, "box");
  auto const error = error_of([&] { world.run(Misuse{GetParam().wrong, window, evens}); });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"Misuse", "rank 1 (", world.devices()[0]->name()}));
  GetParam().expect_named_in(error);
}

struct UseForeign {
  Window<u32> foreign;
  int how;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const source = LocalSpan<u32 const>(nullptr, 0);
    if (how == 0) self.put(foreign.at(RankId{0}), source);
    if (how == 1) self.wait(foreign, Tag{0});
    if (how == 2) self.test(foreign, Tag{0});
    if (how == 3) self.notify(foreign, RankId{0}, Tag{0});
    if (how == 4) self.flush(foreign);
    if (how == 5) self.barrier(foreign.info().communicator);
    if (how == 6) self.get(LocalSpan<u32>(), foreign.at(RankId{0}));
    if (how == 7) self.put_value(foreign.at(RankId{0}), 1u);
    if (how == 8) self.all_reduce(foreign.info().communicator, LocalSpan<u32>(), Sum{});
    if (how == 9) foreign.local(self);
  }
};

TEST(Misuse, of_a_window_of_another_world_is_named) {
  World world(test::options(1)), other(test::options(1));
  auto const foreign = other.window<u32>(4);
  auto const a = std::to_string(foreign.info().world);
  for (int how = 0; how < 10; ++how)
    EXPECT_TRUE(says(error_of([&] { world.run(UseForeign{foreign, how}); }), Kind::kernel_failed,
                     {"of world " + a + " was used in a run of world",
                      "use those of the World that runs the kernel"}))
        << how;
}

struct PrepareAWait {
  Window<u32> box;
  Window<PreparedWait> kept;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const prepared = self.prepare_wait(box, Tag{0});
    if (self.thread() == 0) kept.local(self)[0] = prepared;
  }
};
struct UsePrepared {
  PreparedWait prepared;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(prepared); }
};

// The window's number is another World's.
TEST(Misuse, of_what_was_prepared_in_another_world_names_no_window) {
  World world(test::options(1, test::devices(test::Spread::one_device)));
  World other(test::options(1, test::devices(test::Spread::one_device)));
  auto const own = world.window<u32>(1, Tags{1}, "own");
  auto const box = other.window<u32>(1, Tags{1}, "box");
  auto const kept = other.window<PreparedWait>(1);
  ASSERT_EQ(own.info().number, box.info().number);
  other.run(PrepareAWait{box, kept});
  auto const error = error_of([&] { world.run(UsePrepared{kept.read(RankId{0})[0]}); });
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"wait in", "has not prepared"}));
}

TEST(Misuse, of_a_window_whose_world_is_gone_is_named) {
  Window<u32> window;
  {
    World other(test::options(1));
    window = other.window<u32>(4);
  }
  World world(test::options(1));
  EXPECT_TRUE(says(error_of([&] { world.run(UseForeign{window, 0}); }), Kind::kernel_failed,
                   {"was used in a run of world"}));
}

struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};

TEST(Misuse, of_a_kernel_of_another_version_is_refused) {
  World world(test::options(1));
  auto image = detail::image_of<Nothing, detail::by_nvcc>();
  image.abi = 77;
  Nothing const kernel;
  EXPECT_TRUE(
      says(error_of([&] { world.start(image, &kernel, sizeof kernel, {}).wait(); }),
           Kind::version_mismatch,
           {"Nothing", "version 77", "has " + std::to_string(abi_version), "compile the kernel"}));
}

TEST(Misuse, of_a_kernel_that_was_not_compiled_for_the_device_is_refused) {
  World world(test::options(1));
  auto image = detail::image_of<Nothing, detail::by_nvcc>();
  image.cpu = nullptr;
  image.cuda = nullptr;
  Nothing const kernel;
  EXPECT_TRUE(says(error_of([&] { world.start(image, &kernel, sizeof kernel, {}).wait(); }),
                   Kind::bad_argument,
                   {"launch", "Nothing", "not compiled for", "meshpost_add_executable"}));
}

TEST(Misuse, of_too_many_threads_is_refused) {
  World world(test::options(1));
  for (Dim3 const threads : {Dim3{1025, 1, 1}, Dim3{32, 32, 2}, Dim3{1u << 16, 1u << 16, 1}})
    EXPECT_TRUE(says(error_of([&] { world.run(Nothing{}, {.threads = threads}); }),
                     Kind::bad_argument, {"threads", "1024", "fewer threads"}))
        << threads.x;
  EXPECT_TRUE(says(error_of([&] { world.run(Nothing{}, {.threads = {32, 0, 1}}); }),
                   Kind::bad_argument, {"threads"}));
  world.run(Nothing{});
}

TEST(Misuse, of_more_ranks_than_there_can_be_is_refused) {
  EXPECT_TRUE(says(error_of([] { World world(test::options(100'000)); }), Kind::bad_argument,
                   {"100000 ranks", "at most 65536"}));
}

TEST(Misuse, of_more_ranks_than_fit_a_gpu_names_the_limit) {
  if (!test::on_gpus()) GTEST_SKIP() << "CPU devices take turns";
  World world(test::options(10'000));
  EXPECT_TRUE(says(error_of([&] { world.run(Nothing{}); }), Kind::out_of_memory,
                   {"10000", "asked for", "can be resident at once", "multiprocessors", "registers",
                    "use fewer ranks"}));
}

TEST(Misuse, of_more_scratch_than_a_gpu_has_names_the_limit) {
  if (!test::on_gpus()) GTEST_SKIP() << "CPU devices take it from the host's memory";
  World world(test::options(1));
  EXPECT_TRUE(says(error_of([&] { world.run(Nothing{}, {.scratch = Bytes{1 << 20}}); }),
                   Kind::out_of_memory,
                   {"1048576 bytes of scratch", "at most", "use less scratch"}));
  world.run(Nothing{});
}

TEST(Misuse, of_blocking_launches_is_refused) {
  if (!test::on_gpus()) GTEST_SKIP() << "concerns GPUs";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
        try {
          World world(test::options(1));
          world.run(Nothing{});
        } catch (Error const& error) {
          std::fprintf(stderr, "%s\n", error.what());
          std::_Exit(3);
        }
      },
      testing::ExitedWithCode(3), "CUDA_LAUNCH_BLOCKING=1.*unset CUDA_LAUNCH_BLOCKING");
}

TEST(Misuse, of_communicators_of_another_world_is_refused_by_the_host) {
  World world(test::options(1)), other(test::options(1));
  EXPECT_TRUE(
      says(error_of([&] { world.split(other.communicator(), [](RankId) { return i64{0}; }); }),
           Kind::bad_argument, {"split", "belongs to world", "same World"}));
  EXPECT_TRUE(says(error_of([&] { world.split(Communicator{}, [](RankId) { return i64{0}; }); }),
                   Kind::bad_argument, {"world 0"}));
}

}  // namespace
}  // namespace meshpost
