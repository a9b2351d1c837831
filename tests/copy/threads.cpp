// If the system gives no thread, no operation stays in progress, and later ones work.
#include <latch>
#include <new>
#include <thread>

#include "base/no_threads.hpp"
#include "copy/execute.hpp"
#include "copy/measured.hpp"
#include "copy/places.hpp"
#include "copy/together.hpp"
#include "fabric/host_copy.hpp"

namespace meshpost {
namespace {

using test::copy_devices;
using test::error_of;
using test::NoThreads;
using test::says;

// They live as long as the process.
copying::Workers& workers(u32 most) {
  static auto* const all = new std::vector<copying::Workers*>;
  return *all->emplace_back(new copying::Workers(most));
}

void run_and_wait(copying::Workers& by) {
  std::latch done(1);
  by.run([&] { done.count_down(); });
  done.wait();
}

TEST(Threads, that_can_not_start_leave_no_task_behind) {
  auto& one = workers(1);
  std::atomic<bool> late{false};
  {
    NoThreads const none("copy");
    EXPECT_TRUE(says(error_of([&] { one.run([&] { late = true; }); }), Kind::out_of_memory,
                     {"start a thread to copy", "no thread could be started", "ulimit -u"}));
  }
  run_and_wait(one);  // tasks are done in order
  EXPECT_FALSE(late);
}

TEST(Threads, that_can_not_start_do_not_count) {
  auto& one = workers(2);
  {
    NoThreads const none("copy");
    for (int i = 0; i < 3; ++i) error_of([&] { one.run([] {}); });
  }
  run_and_wait(one);
}

TEST(Threads, that_are_there_do_what_those_that_are_not_would_have_done) {
  auto& one = workers(2);
  std::latch go(1), done(2);
  one.run([&] { go.wait(), done.count_down(); });
  NoThreads const none("copy");
  one.run([&] { done.count_down(); });
  go.count_down();
  done.wait();
}

TEST(Threads, of_a_team_may_be_fewer) {
  int given = 0;
  NoThreads const few([&](std::string_view) { return ++given > 2; });
  fabric::ThreadTeam team(8);
  EXPECT_EQ(team.threads(), 3u);
  std::vector<u8> const source(5'000'000, 7);
  std::vector<u8> target(source.size());
  team.copy(target.data(), source.data(), Bytes{source.size()});
  EXPECT_EQ(target, source);
}

TEST(Threads, of_a_team_may_be_fewer_where_memory_is_used_up) {
  int given = 0;
  NoThreads const few([&](std::string_view) {
    if (++given > 2) throw std::bad_alloc();
    return false;
  });
  EXPECT_EQ(fabric::ThreadTeam(8).threads(), 3u);
}

TEST(Threads, of_a_team_end_all_pieces_before_an_error_is_told) {
  fabric::ThreadTeam team(3);
  std::atomic<u64> done{0};
  auto const work = [&](u64 piece) {
    ++done;
    if (piece % 2 == 0) throw std::bad_alloc();
  };
  EXPECT_THROW(team.each(50, work), std::bad_alloc);
  EXPECT_EQ(done, 50u);
}

TEST(Threads, of_a_stream_that_can_not_start_leave_nothing_queued) {
  auto const stream = open_devices("cpu:1")[0]->make_stream();
  std::vector<u8> bytes(8);
  {
    NoThreads const none("run a stream");
    EXPECT_TRUE(says(error_of([&] { stream->fill(bytes.data(), 1, Bytes{8}); }),
                     Kind::out_of_memory, {"start a thread to run a stream"}));
  }
  stream->synchronize();
  EXPECT_EQ(bytes, std::vector<u8>(8));
}

TEST(Threads, that_are_missing_let_a_list_of_copies_end_before_anything_is_told) {
  auto const first = std::make_shared<copying::HostState>();
  std::latch thrown(1);
  std::thread thread([&] {
    thrown.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    first->run([] {});
  });
  auto const start = [&](int i) -> copying::StatePtr {
    if (i == 0) return first;
    thrown.count_down();
    throw std::bad_alloc();
  };
  EXPECT_THROW(copying::start_each(std::vector<int>{0, 1, 2}, start), std::bad_alloc);
  EXPECT_TRUE(first->done());
  thread.join();
}

// The tests below need a process that has no threads yet.
int fresh() {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  return 0;
}

int outcome() { return testing::Test::HasFailure() ? 1 : 0; }

void copy_without_threads() {
  std::vector<u8> const source(3'000'000, 7);
  std::vector<u8> target(source.size()), other(source.size());
  copy_devices();
  {
    NoThreads const none("copy");
    EXPECT_TRUE(
        says(error_of([&] { copy_async(target.data(), source.data(), Bytes{source.size()}); }),
             Kind::out_of_memory, {"start a thread to copy"}));
    std::vector<Segment> const list{{target.data(), source.data(), Bytes{2'000'000}},
                                    {target.data() + 5, source.data(), Bytes{2'000'000}}};
    EXPECT_TRUE(says(error_of([&] { copy_batch(list); }), Kind::out_of_memory, {"to copy"}));
    copy(target.data(), source.data(), Bytes{source.size()});  // the caller copies
    EXPECT_EQ(target, source);
  }
  std::ranges::fill(target, u8{1});
  copy_async(other.data(), source.data(), Bytes{source.size()}).wait();
  EXPECT_EQ(other, source);
  EXPECT_EQ(target, std::vector<u8>(source.size(), 1));
}

TEST(ThreadsCpuOnly, that_are_missing_are_an_error_of_the_copy_that_needs_them) {
  fresh();
  EXPECT_EXIT((copy_without_threads(), _Exit(outcome())), testing::ExitedWithCode(0), "");
}

void copy_after_a_stream_without_threads() {
  auto const stream = open_devices("cpu:1")[0]->make_stream();
  std::vector<u8> const source(10, 7);
  std::vector<u8> target(10), flag(1);
  std::latch go(1);
  stream->call([&] { go.wait(); });
  auto under_way = copy_async(target.data(), source.data(), Bytes{10}, {{stream.get()}});
  stream->fill(flag.data(), 1, Bytes{1});
  NoThreads const none("copy");
  go.count_down();
  stream->synchronize();  // it still works
  EXPECT_EQ(flag[0], 1);
  EXPECT_TRUE(says(error_of([&] { under_way.wait(); }), Kind::out_of_memory, {"to copy"}));
  EXPECT_EQ(target, std::vector<u8>(10));
}

TEST(ThreadsCpuOnly, that_are_missing_when_a_stream_gets_there_are_the_copys_error) {
  fresh();
  EXPECT_EXIT((copy_after_a_stream_without_threads(), _Exit(outcome())), testing::ExitedWithCode(0),
              "");
}

void take_a_route_without_threads() {
  Machine machine;
  for (auto const* const name : {"cpu:0", "cpu:1"}) {
    PlaceInfo info;
    info.place = parse_place(name);
    machine.places.push_back(info);
  }
  machine.links.push_back({0, 1, Mover::copy_engine, "", 1e-6, 1e9, 1e9});
  auto const plan = [&](u64 chunk) {
    Route const route{{{{0}, {}, Bytes{chunk}}, {{0}, {}, Bytes{chunk}}}, 0};
    return std::make_shared<copying::Plan const>(copying::Plan{&machine, route, "two chains"});
  };
  std::vector<u8> const source(100'000, 7);
  std::vector<u8> target(source.size());
  PitchedCopy rows;
  rows.target = target.data(), rows.source = source.data(), rows.width = source.size();
  copying::Request const request{rows, {}, {}};
  copy_devices();
  {
    NoThreads const none("copy");
    EXPECT_TRUE(says(error_of([&] { copying::execute(plan(1000), request); }), Kind::out_of_memory,
                     {"to copy"}));
  }
  int given = 0;  // a thread for the first chain, then no memory
  {
    NoThreads const few([&](std::string_view purpose) {
      if (purpose == "copy" && given++ == 1) throw std::bad_alloc();
      return false;
    });
    try {
      copying::execute(plan(1), request)->wait();  // a byte at a time: seconds
      ADD_FAILURE() << "the second chain needed no thread";
    } catch (std::bad_alloc const&) {
      auto const left = target;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_TRUE(target == left) << "the first chain went on";
    }
  }
  EXPECT_FALSE(copying::remembered("two chains", source.size())) << "no copy was made";
  std::ranges::fill(target, u8{1});
  copying::execute(plan(1000), request)->wait();
  EXPECT_EQ(target, source);
}

TEST(ThreadsCpuOnly, that_are_missing_for_a_chain_end_the_others) {
  fresh();
  EXPECT_EXIT((take_a_route_without_threads(), _Exit(outcome())), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace meshpost
