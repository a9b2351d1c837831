// Runs that are made once and launched together repeatedly.
#include <atomic>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

// Each rank passes on its value plus `add`, or fails if its value is `fails`.
struct Pass {
  Window<u32> words;
  u32 add;
  u32 fails = ~0u;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = words.local(self);
    if (mine[0] == fails) self.fail("it has come so far");
    if (self.thread() == 0) mine[1] = mine[0] + add;
    self.barrier();  // before the received value replaces it
    self.put_notify(words.at(RankId{(self.id() + 1) % self.size()}), mine.subspan(1, 1), Tag{0});
    self.wait(words, Tag{0});
  }
};

struct LeaveMany {  // that is never consumed
  Window<u32> words;
  u32 tag, count;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 i = 0; self.id() == 0 && i < count; ++i)
      self.notify(words, RankId{self.size() - 1}, Tag{tag});
    self.start_timer();
    self.stop_timer();
  }
};

struct Quiet {
  MESHPOST_FN void operator()(Rank&) const {}
};

struct WaitForNobody {
  Window<u32> words;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(words, Tag{3}); }
};

struct Threads {  // adds the value given at its launch
  Window<u32> words;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const scratch = self.scratch<u32>();
    for (u64 i = self.thread(); i < scratch.size(); i += self.threads()) scratch[i] = 1;
    self.sync();
    if (self.thread() != 0) return;
    u32 sum = 0;
    for (u64 i = 0; i < scratch.size(); ++i) sum += scratch[i];
    words.local(self)[0] += sum * self.threads();
  }
};

class Graphs : public testing::Test {
 protected:
  World world_{test::options(2, test::devices(test::Spread::several_devices))};
  Window<u32> words_ = world_.window<u32>(2, Tags{4}, "words");

  Graph of_steps(u32 steps, u32 fails = ~0u) const {
    Graph graph;
    for (u32 i = 0; i < steps; ++i) graph.add(Pass{words_, 1 + i % 2, fails});
    return graph;
  }
  void set(u32 value) {
    for (u32 rank = 0; rank < world_.size(); ++rank)
      words_.write(RankId{rank}, 0, std::vector<u32>{value});
  }
  void expect(u32 value) {
    for (u32 rank = 0; rank < world_.size(); ++rank)
      EXPECT_EQ(words_.read(RankId{rank})[0], value) << "rank " << rank;
  }
};

TEST_F(Graphs, run_what_was_added_in_its_order_as_often_as_they_are_launched) {
  auto const graph = of_steps(20);  // adds 30
  EXPECT_EQ(graph.size(), 20u);
  for (u32 i = 1; i <= 5; ++i) {
    EXPECT_GT(world_.run(graph).seconds, 0.0);
    expect(30 * i);
  }
}

TEST_F(Graphs, are_queued_among_single_runs_and_each_other) {
  auto const graph = of_steps(4), other = of_steps(3);  // add 6 and 4
  std::vector<meshpost::Run> runs;
  for (u32 i = 0; i < 10; ++i) {
    runs.push_back(world_.launch(graph));
    runs.push_back(world_.launch(Pass{words_, 5}));
    runs.push_back(world_.launch(graph));
    runs.push_back(world_.launch(other));
  }
  for (auto& run : runs) run.wait();
  expect(10 * (6 + 5 + 6 + 4));
}

TEST_F(Graphs, have_what_each_run_was_given) {
  Graph graph;
  for (u32 const threads : {32u, 64u, 96u})
    graph.add(Threads{words_}, {.threads = {threads, 1, 1}, .scratch = Bytes{threads * 4}});
  world_.run(graph);
  expect(32 * 32 + 64 * 64 + 96 * 96);
}

TEST_F(Graphs, tell_what_all_their_runs_left) {
  test::Listener const listener;
  Graph graph;
  for (u32 i = 0; i < 6; ++i) {
    graph.add(LeaveMany{words_, i % 3, i + 1});
    graph.add(Quiet{});
  }
  for (u32 round = 0; round < 3; ++round) {
    auto const result = world_.run(graph);
    ASSERT_EQ(result.unconsumed.size(), 6u);
    for (u32 i = 0; i < 6; ++i) {
      EXPECT_EQ(result.unconsumed[i].tag.value, i % 3);
      EXPECT_EQ(result.unconsumed[i].count, i + 1);
    }
    for (auto const& device : result.timings) EXPECT_EQ(device.size(), 6u);
  }
}

TEST_F(Graphs, name_the_run_that_failed_and_end_those_behind_it) {
  test::Listener const listener;
  auto const graph = of_steps(20, 7);  // after 5 of its runs each rank has 7
  for (u32 round = 0; round < 3; ++round) {
    set(0);
    auto failed = world_.launch(graph);
    auto behind = world_.launch(graph);
    EXPECT_TRUE(says(error_of([&] { failed.wait(); }), Kind::kernel_failed,
                     {"it has come so far", "run 6 of 20 of a graph"}));
    if (test::on_gpus() && test::devices().find('*') == std::string::npos)
      EXPECT_TRUE(says(error_of([&] { behind.wait(); }), Kind::kernel_failed,
                       {"queued behind a run that failed"}));
    else EXPECT_TRUE(says(error_of([&] { behind.wait(); }), Kind::kernel_failed, {"run 1 of 20"}));
    set(8);
    world_.run(graph);
    expect(38);
  }
}

TEST_F(Graphs, that_wait_in_vain_are_found_out) {
  test::Listener const listener;
  Graph graph;
  graph.add(Quiet{}).add(Quiet{}).add(WaitForNobody{words_}).add(Quiet{});
  EXPECT_TRUE(says(error_of([&] { world_.run(graph); }), Kind::deadlock,
                   {"WaitForNobody", "run 3 of 4", "waits for tag 3"}));
  world_.run(of_steps(2));
  expect(3);
}

TEST_F(Graphs, follow_windows_that_were_freed) {
  test::Listener const listener;
  auto const gone = world_.window<u32>(2, Tags{4}, "gone");
  Graph graph;
  graph.add(Pass{words_, 1}).add(Pass{gone, 1});
  world_.run(graph);
  world_.free(gone);
  EXPECT_TRUE(says(error_of([&] { world_.run(graph); }), Kind::kernel_failed,
                   {"'gone'", "freed", "run 2 of 2"}));
}

TEST_F(Graphs, begin_after_their_streams_and_let_them_go_on_after_them) {
  auto const graph = of_steps(10);
  auto const stream = world_.devices()[0]->make_stream();
  for (u32 round = 1; round <= 5; ++round) {
    std::atomic<bool> begun = false;
    stream->call([&] {
      std::this_thread::sleep_for(5ms);
      begun = true;
    });
    auto run = world_.launch(graph, {.streams = {stream.get()}});
    bool done = false;
    stream->call([&] { done = begun; });
    stream->synchronize();
    EXPECT_TRUE(done);
    run.wait();
    expect(15 * round);
  }
}

TEST_F(Graphs, may_have_a_timeline_and_the_host) {
  auto const graph = of_steps(4);
  auto const file = testing::TempDir() + "meshpost_graph.json";
  world_.run(graph, {.trace = file});
  world_.run(graph, {.with_host = true});
  expect(12);
}

TEST_F(Graphs, may_be_launched_by_several_worlds) {
  World other(test::options(1));
  Graph graph;
  graph.add(Quiet{}).add(Quiet{});
  for (int i = 0; i < 3; ++i) {
    auto one = world_.launch(graph), two = other.launch(graph);
    one.wait();
    two.wait();
  }
}

TEST_F(Graphs, outlive_their_world) {
  Graph graph;
  graph.add(Quiet{});
  {
    World(test::options(1)).run(graph);
  }
  world_.run(graph);
}

TEST_F(Graphs, refuse_what_makes_no_sense) {
  Graph graph;
  EXPECT_TRUE(says(error_of([&] { world_.run(graph); }), Kind::bad_argument, {"has no runs"}));
  EXPECT_TRUE(says(error_of([&] { graph.add(Quiet{}, {.deadline = 1s}); }), Kind::bad_argument,
                   {"a deadline", "World::launch(graph"}));
  EXPECT_TRUE(says(error_of([&] { graph.add(Quiet{}, {.with_host = true}); }), Kind::bad_argument,
                   {"with_host"}));
  graph.add(Quiet{});
  EXPECT_TRUE(says(error_of([&] { world_.run(graph, {.threads = {32, 1, 1}}); }),
                   Kind::bad_argument, {"threads", "Graph::add"}));
  world_.run(graph);
  EXPECT_TRUE(says(error_of([&] { graph.add(Quiet{}); }), Kind::misuse, {"was launched already"}));
  Graph wide;
  wide.add(Quiet{}, {.threads = {1 << 20, 1, 1}});
  EXPECT_TRUE(says(error_of([&] { world_.run(wide); }), Kind::bad_argument, {"threads a rank"}));
}

}  // namespace
}  // namespace meshpost
