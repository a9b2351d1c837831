// Operations of streams in CUDA graphs, and streams of the user.
#include <meshpost/meshpost.hpp>

#include <optional>
#include <vector>

#include "support/errors.hpp"
#include "support/worlds.hpp"

#if defined(__CUDACC__)

namespace meshpost::stream_graph_tests {
namespace {

using test::error_of;
using test::says;

void check(cudaError_t status) { ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status); }

__global__ void add_one(u32* word) { *word += 1; }

class StreamGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::on_gpus()) GTEST_SKIP() << "needs GPUs";
    world.emplace(test::options(1));
    for (u32 d = 0; d < world->devices().size(); ++d) {
      auto& device = *world->devices()[d];
      check(cudaSetDevice(static_cast<int>(device.index())));
      check(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking));
      words.push_back(device.allocate(Bytes{4}, MemoryKind::device));
      device.fill(words.back().data(), 0, Bytes{4});
      ends.emplace_back(*world, d, streams.back());
    }
    box.emplace(world->window<u32>(4, Tags{4}, "box"));
  }
  void TearDown() override {
    ends.clear();
    for (auto const stream : streams) cudaStreamDestroy(stream);
  }
  u32 count() const { return static_cast<u32>(ends.size()); }
  void choose(u32 d) { check(cudaSetDevice(static_cast<int>(world->devices()[d]->index()))); }

  // A number goes round all devices, and each adds one to it. The first begins.
  void capture_ring(u32 d, cudaGraphExec_t& made) {
    choose(d);
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeThreadLocal));
    u32 const next = (d + 1) % count();
    auto* const word = words[d].as<u32>();
    std::span<u32 const> const source(word, 1);
    if (d != 0) ends[d].wait(*box, Tag{0});
    if (d != 0) ends[d].stream().copy(word, first_word(d), Bytes{4});
    add_one<<<1, 1, 0, streams[d]>>>(word);
    ends[d].put_notify(box->at(RankId{next}), source, ends[next].id(), Tag{0});
    if (d == 0) {
      ends[d].wait(*box, Tag{0});
      ends[d].stream().copy(word, first_word(d), Bytes{4});
    }
    check(cudaStreamEndCapture(streams[d], &graph));
    check(cudaGraphInstantiate(&made, graph, 0));
    check(cudaGraphDestroy(graph));
  }
  u32* first_word(u32 d) { return box->part(RankId{d}).data(); }

  std::optional<World> world;
  std::vector<cudaStream_t> streams;
  std::vector<Allocation> words;
  std::vector<StreamEndpoint> ends;
  std::optional<Window<u32>> box;
};

TEST_F(StreamGraphs, are_right_in_the_first_and_the_thousandth_replay) {
  std::vector<cudaGraphExec_t> graphs(count());
  for (u32 d = 0; d < count(); ++d) capture_ring(d, graphs[d]);
  constexpr u32 replays = 1000;
  for (u32 i = 0; i < replays; ++i)
    for (u32 d = 0; d < count(); ++d) {
      choose(d);
      check(cudaGraphLaunch(graphs[d], streams[d]));
    }
  for (auto& end : ends) end.synchronize();
  u32 got = 0;
  world->devices()[0]->read(&got, words[0].data(), Bytes{4});
  EXPECT_EQ(got, replays * count());
  // Between replays the same counters serve calls without a graph.
  ends[0].notify(*box, ends[0].id(), Tag{0});
  ends[0].wait(*box, Tag{0});
  ends[0].synchronize();
  for (auto const graph : graphs) check(cudaGraphExecDestroy(graph));
}

// Chunks are numbered on the device, so each replay goes on where the last one ended.
TEST_F(StreamGraphs, send_and_receive_messages_in_each_replay) {
  MessageWindow const mail(*world, {.tags = 1, .slots = 4, .slot_bytes = 128});
  constexpr u64 size = 100;  // four chunks
  std::vector<Allocation> memory;
  std::vector<cudaGraphExec_t> graphs(count());
  for (u32 d = 0; d < count(); ++d) {
    auto& device = *world->devices()[d];
    auto& buffer =
        memory.emplace_back(device.allocate(Bytes{size * sizeof(u32)}, MemoryKind::device));
    device.fill(buffer.data(), 0, buffer.size());
  }
  for (u32 d = 0; d < count(); ++d) {
    choose(d);
    cudaGraph_t graph = nullptr;
    std::span<u32> const all(memory[d].as<u32>(), size);
    u32 const next = (d + 1) % count(), previous = (d + count() - 1) % count();
    auto send = ends[d].prepare().send(mail, ends[next].id(), all, Tag{0});
    check(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeThreadLocal));
    if (d != 0) ends[d].receive(mail, ends[previous].id(), all, Tag{0});
    add_one<<<1, 1, 0, streams[d]>>>(all.data() + size - 1);
    send.post();
    if (d == 0) ends[d].receive(mail, ends[previous].id(), all, Tag{0});
    check(cudaStreamEndCapture(streams[d], &graph));
    check(cudaGraphInstantiate(&graphs[d], graph, 0));
    check(cudaGraphDestroy(graph));
  }
  constexpr u32 replays = 1000;
  for (u32 i = 0; i < replays; ++i)
    for (u32 d = 0; d < count(); ++d) {
      choose(d);
      check(cudaGraphLaunch(graphs[d], streams[d]));
    }
  for (auto& end : ends) end.synchronize();
  u32 got = 0;
  world->devices()[0]->read(&got, memory[0].as<u32>() + size - 1, Bytes{4});
  EXPECT_EQ(got, replays * count());
  for (auto const graph : graphs) check(cudaGraphExecDestroy(graph));
}

TEST_F(StreamGraphs, refuse_to_wait_or_free_in_a_capture_and_stand_one_that_breaks_off) {
  choose(0);
  check(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
  ends[0].notify(*box, ends[0].id(), Tag{1});
  auto const error = error_of([&] { ends[0].synchronize(); });
  EXPECT_TRUE(says(error, Kind::misuse, {"synchronize, stream 0 of", "captured"}));
  auto const free = error_of([&] { world->free(*box); });
  EXPECT_TRUE(says(free, Kind::misuse, {"free window", "captured"}));
  // A call that no capture permits breaks it off.
  cudaStreamSynchronize(streams[0]);
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  cudaGetLastError();
  ends[0].notify(*box, ends[0].id(), Tag{1});
  ends[0].wait(*box, Tag{1});
  ends[0].synchronize();
}

TEST_F(StreamGraphs, refuse_a_stream_of_another_device) {
  if (count() < 2 || world->devices()[0]->index() == world->devices()[1]->index())
    GTEST_SKIP() << "needs two GPUs";
  auto const error = error_of([&] { StreamEndpoint(*world, 0, streams[1]); });
  EXPECT_TRUE(says(error, Kind::bad_argument, {"cuda:0", "cuda:1"}));
}

}  // namespace
}  // namespace meshpost::stream_graph_tests

#endif
