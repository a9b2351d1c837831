// LibMP's messages: the host's, and those of streams.
#include "peers.hpp"
#include "runs.hpp"

#include <chrono>
#include <thread>

namespace meshpost {
namespace {

using test::Peers;
using test::Registered;
using test::require;
using test::Role;

std::vector<int> numbers(int from, int message, std::size_t size) {
  std::vector<int> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = from * 1'000'000 + message * 100'000 + static_cast<int>(i % 90'000);
  return values;
}

Role const messages("mp_messages", [] {
  Peers const peers;
  // 300'000 numbers take more chunks than a ring has.
  for (std::size_t const size : {1ul, 1000ul, 300'000ul}) {
    constexpr int each = 3;
    std::vector<std::unique_ptr<Registered<int>>> sent, come;
    std::vector<mp_request_t> sends, receives;
    for (int peer = 0; peer < peers.count; ++peer)
      for (int message = 0; message < each; ++message) {
        auto& to = *come.emplace_back(std::make_unique<Registered<int>>(size, -1));
        MESHPOST_MP(
            mp_irecv(to.values.data(), to.bytes(), peer, &to.reg, &receives.emplace_back()));
        auto& from = *sent.emplace_back(std::make_unique<Registered<int>>(size));
        from.values = numbers(peers.own, message, size);
        MESHPOST_MP(mp_deregister(&from.reg));
        MESHPOST_MP(mp_register(from.values.data(), from.values.size() * sizeof(int), &from.reg));
        MESHPOST_MP(
            mp_isend(from.values.data(), from.bytes(), peer, &from.reg, &sends.emplace_back()));
      }
    MESHPOST_MP(mp_wait_all(static_cast<uint32_t>(receives.size()), receives.data()));
    MESHPOST_MP(mp_wait_all(static_cast<uint32_t>(sends.size()), sends.data()));
    for (int peer = 0, i = 0; peer < peers.count; ++peer)
      for (int message = 0; message < each; ++message, ++i)
        require(come[static_cast<std::size_t>(i)]->values == numbers(peer, message, size),
                "messages of a peer come in order");
    MESHPOST_MP(mp_wait(&sends.front()));  // complete already
    MESHPOST_MP(mp_progress_all(1, &sends.front()));
  }
  // Blocks of one registration, and a message shorter than its receive.
  Registered<int> parts(6), come(5, -1);
  for (int i = 0; i < 6; ++i) parts.values[static_cast<std::size_t>(i)] = i;
  iovec from[] = {{&parts.values[4], 2 * sizeof(int)}, {&parts.values[0], sizeof(int)}};
  iovec to[] = {{&come.values[3], 2 * sizeof(int)}, {&come.values[0], 2 * sizeof(int)}};
  mp_request_t send, receive;
  MESHPOST_MP(mp_irecvv(to, 2, peers.previous(), &come.reg, &receive));
  MESHPOST_MP(mp_isendv(from, 2, peers.next(), &parts.reg, &send));
  MESHPOST_MP(mp_wait(&receive));
  MESHPOST_MP(mp_wait(&send));
  require(come.values == std::vector<int>{0, -1, -1, 4, 5}, "blocks are joined");
});

TEST(MpMessages, of_the_host_come_in_order) {
  test::Job job("mp_messages", 3);
  test::expect_well(job.wait());
}
TEST(MpMessages, go_to_processes_out_of_reach) { test::run_out_of_reach("mp_messages", 3); }
TEST(MpMessages, go_to_the_own_process_without_a_launcher) {
  test::Job job("mp_messages", 1);
  test::expect_well(job.wait());
}

struct Held {
  static void sleep(void* /*unused*/) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
};

Role const streams("mp_streams", [] {
  Peers const peers;
  cudaStream_t slow, fast;
  require(cudaStreamCreate(&slow) == cudaSuccess && cudaStreamCreate(&fast) == cudaSuccess,
          "streams");
  constexpr std::size_t size = 50'000;
  void *out = nullptr, *in = nullptr;
  require(cudaMalloc(&out, 4 * size) == cudaSuccess && cudaMalloc(&in, 4 * size) == cudaSuccess,
          "memory");
  mp_reg_t out_reg, in_reg;
  MESHPOST_MP(mp_register(out, 4 * size, &out_reg));
  MESHPOST_MP(mp_register(in, 4 * size, &in_reg));
  auto const at = [](void* memory, std::size_t offset) {
    return static_cast<void*>(static_cast<char*>(memory) + offset);
  };
  for (int round = 0; round < 3; ++round) {
    mp_request_t receives[4], sends[4];
    for (std::size_t i = 0; i < 4; ++i)
      MESHPOST_MP(mp_irecv(at(in, i * size), size, peers.previous(), &in_reg, &receives[i]));
    // The slow stream's message is posted first, so it comes first.
    require(cudaLaunchHostFunc(slow, Held::sleep, nullptr) == cudaSuccess, "a host function");
    for (std::size_t i = 0; i < 4; ++i)
      cudaMemsetAsync(at(out, i * size), 10 * round + static_cast<int>(i), size,
                      i < 2 ? slow : fast);
    MESHPOST_MP(mp_isend_on_stream(out, size, peers.next(), &out_reg, &sends[0], slow));
    for (std::size_t i = 1; i < 4; ++i)
      MESHPOST_MP(mp_send_prepare(at(out, i * size), size, peers.next(), &out_reg, &sends[i]));
    MESHPOST_MP(mp_isend_post_on_stream(&sends[1], slow));
    MESHPOST_MP(mp_send_post_all_on_stream(2, &sends[2], fast));
    MESHPOST_MP(mp_wait_all_on_stream(4, receives, fast));
    MESHPOST_MP(mp_wait_on_stream(&sends[1], slow));
    std::vector<char> got(4 * size);
    require(cudaMemcpyAsync(got.data(), in, 4 * size, cudaMemcpyDefault, fast) == cudaSuccess,
            "copy");
    require(cudaStreamSynchronize(fast) == cudaSuccess, "the stream ends");
    for (std::size_t i = 0; i < 4 * size; ++i)
      require(got[i] == 10 * round + static_cast<int>(i / size),
              "the stream sees the messages in order");
    MESHPOST_MP(mp_wait_all(4, sends));
    require(cudaStreamSynchronize(slow) == cudaSuccess, "the stream ends");
  }
  MESHPOST_MP(mp_deregister(&out_reg));
  MESHPOST_MP(mp_deregister(&in_reg));
  cudaFree(out), cudaFree(in);
  cudaStreamDestroy(slow), cudaStreamDestroy(fast);
});

TEST(MpMessages, of_two_streams_come_in_the_order_of_their_posts) {
  test::Job job("mp_streams", 2);
  test::expect_well(job.wait());
}

// Each sends more than any ring holds and waits for that, before it receives. The receives are
// posted, so nobody waits for ever.
Role const both("mp_both_send_first", [] {
  Peers const peers;
  Registered<int> out(3'000'000, peers.own), in(3'000'000, -1);
  mp_request_t receive, send;
  MESHPOST_MP(mp_irecv(in.values.data(), in.bytes(), peers.next(), &in.reg, &receive));
  MESHPOST_MP(mp_isend(out.values.data(), out.bytes(), peers.next(), &out.reg, &send));
  MESHPOST_MP(mp_wait(&send));
  MESHPOST_MP(mp_wait(&receive));
  require(in.values == std::vector<int>(in.values.size(), peers.next()), "all has come");
});

TEST(MpMessages, longer_than_the_rings_need_only_a_posted_receive) {
  test::Job job("mp_both_send_first", 2);
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
