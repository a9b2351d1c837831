// Streams, threads and the end of a LibMP program, where these are slow or wrong.
#include "peers.hpp"
#include "runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "meshpost/device/backend.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::Peers;
using test::Registered;
using test::require;
using test::Role;
using testing::HasSubstr;

// The deadline is 1 s.
Role const slow("mp_slow", [] {
  Peers const peers;
  Registered<char> mine(100);
  cudaStream_t stream;
  require(cudaStreamCreate(&stream) == cudaSuccess, "a stream");
  // A word that changes is news.
  alignas(64) static uint32_t word = 0;
  MESHPOST_MP(mp_wait32_on_stream(&word, 15, MP_WAIT_GEQ, stream));
  for (uint32_t i = 1; i <= 15; ++i) {
    std::this_thread::sleep_for(100ms);
    __atomic_store_n(&word, i, __ATOMIC_RELEASE);
  }
  require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream ends");
  // Nobody receives the first. It does not matter that the stream has not come to the second.
  mp_request_t first, second;
  MESHPOST_MP(mp_isend(mine.values.data(), 10, 0, &mine.reg, &first));
  static std::atomic<bool> over = false;
  auto const busy = [](void*) {
    for (int i = 0; i < 3000 && !over; ++i) std::this_thread::sleep_for(10ms);
  };
  require(cudaLaunchHostFunc(stream, busy, nullptr) == cudaSuccess, "a host function");
  MESHPOST_MP(mp_isend_on_stream(mine.values.data(), 10, 0, &mine.reg, &second, stream));
  auto const begin = std::chrono::steady_clock::now();
  require(mp_wait(&first) == MP_FAILURE, "an error");
  require(std::chrono::steady_clock::now() - begin < 20s, "in time");
  test::say(mp_last_error());
  over = true;
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
});

TEST(MpSessions, count_a_deadline_for_what_does_not_move) {
  test::Job job("mp_slow", 1, {{"MESHPOST_DEADLINE", "1"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out, HasSubstr("send of 10 bytes to process 0"));
}

Role const silent("mp_silent", [] {
  Peers const peers;
  Registered<char> mine(10);
  cudaStream_t stream;
  require(cudaStreamCreate(&stream) == cudaSuccess, "a stream");
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(mine.values.data(), 10, 0, &mine.reg, &receive));
  MESHPOST_MP(mp_wait_on_stream(&receive, stream));
  require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream ends");
  cudaStreamDestroy(stream);
});

TEST(MpSessions, write_the_error_of_a_stream_that_no_call_returns) {
  test::Job job("mp_silent", 1, {{"MESHPOST_DEADLINE", "0.3"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out, HasSubstr("receive of 10 bytes from process 0: 0 of 10 bytes"));
}

Role const word_of_lost("mp_word_of_lost", [] {
  Peers const peers;
  test::say("waits");
  if (peers.own == 1) std::this_thread::sleep_for(30s);
  static uint32_t word = 0;
  require(mp_wait32(&word, 1, MP_WAIT_EQ) == MP_FAILURE, "an error");
  test::say(mp_last_error());
});

TEST(MpSessions, end_a_wait_for_a_word_when_a_peer_is_lost) {
  test::expect_the_loss_is_seen("mp_word_of_lost");
}

Role const bound("mp_bound", [] {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  require(sched_setaffinity(0, sizeof one, &one) == 0, "one core");
  Peers const peers;
});

TEST(MpSessions, warn_if_their_threads_share_a_core) {
  if (sysconf(_SC_NPROCESSORS_CONF) < 2) GTEST_SKIP() << "there is one core";
  test::Job job("mp_bound", 1);
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out, HasSubstr("mpirun --bind-to none"));
}

Role const unreceived("mp_unreceived", [] {
  Peers const peers;
  Registered<char> mine(10);
  mp_request_t send;
  if (peers.own == 0) MESHPOST_MP(mp_isend(mine.values.data(), 10, 1, &mine.reg, &send));
  mp_finalize();
  test::say("end: " + std::string(mp_last_error()));
});

TEST(MpSessions, end_in_all_processes_if_one_has_sent_what_nobody_receives) {
  test::Job job("mp_unreceived", 2, {{"MESHPOST_DEADLINE", "0.6"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out, HasSubstr("end: mp_finalize: send of 10 bytes to process 1"));
  EXPECT_LT(all[1].seconds, 10);
}

TEST(MpSessions, end_behind_what_has_begun) {
  std::vector<char> from(8 << 20, 'a'), to(from.size(), 'b');
  {
    Peers const peers;
    mp_reg_t reg;
    mp_window_t window;
    mp_request_t get;
    MESHPOST_MP(mp_register(to.data(), to.size(), &reg));
    MESHPOST_MP(mp_window_create(from.data(), from.size(), &window));
    MESHPOST_MP(mp_iget(to.data(), static_cast<int>(to.size()), &reg, 0, 0, &window, &get));
  }
  EXPECT_TRUE(from == to);
}

TEST(MpSessions, know_no_handles_of_earlier_ones) {
  char memory[10] = {};
  mp_reg_t old, reg;
  mp_request_t send, receive;
  mp_window_t window;
  {
    Peers const peers;
    MESHPOST_MP(mp_register(memory, sizeof memory, &old));
    MESHPOST_MP(mp_irecv(memory, 5, 0, &old, &receive));
    MESHPOST_MP(mp_isend(memory + 5, 5, 0, &old, &send));
    MESHPOST_MP(mp_wait(&receive));
    MESHPOST_MP(mp_window_create(memory, sizeof memory, &window));
  }
  Peers const peers;
  MESHPOST_MP(mp_register(memory, sizeof memory, &reg));
  EXPECT_EQ(mp_deregister(&old), MP_FAILURE);
  EXPECT_EQ(mp_isend(memory, 1, 0, &old, &receive), MP_FAILURE);
  EXPECT_EQ(mp_wait(&send), MP_FAILURE);
  EXPECT_THAT(mp_last_error(), HasSubstr("no such request since mp_init"));
  EXPECT_EQ(mp_window_destroy(&window), MP_FAILURE);
  MESHPOST_MP(mp_window_create(memory, sizeof memory, &window));
  MESHPOST_MP(mp_window_destroy(&window));
  EXPECT_EQ(mp_window_destroy(&window), MP_FAILURE);
  MESHPOST_MP(mp_deregister(&reg));
}

TEST(MpSessions, post_a_list_as_a_whole_or_not) {
  Peers const peers;
  Registered<char> mine(100);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  mp_request_t sends[2], receives[2];
  mp_desc_queue_t queue;
  MESHPOST_MP(mp_desc_queue_alloc(&queue));
  for (int i = 0; i < 2; ++i) {
    MESHPOST_MP(mp_irecv(&mine.values[10 * i], 10, 0, &mine.reg, &receives[i]));
    MESHPOST_MP(mp_send_prepare(&mine.values[50], 10, 0, &mine.reg, &sends[i]));
    MESHPOST_MP(mp_desc_queue_add_send(&queue, &sends[i]));
  }
  MESHPOST_MP(mp_isend_post_on_stream(&sends[1], stream));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(mp_desc_queue_post_on_stream(stream, &queue, 0), MP_FAILURE);
    EXPECT_EQ(mp_isend_post_all_on_stream(2, sends, stream), MP_FAILURE);
    EXPECT_THAT(mp_last_error(), HasSubstr("posted before"));
  }
  MESHPOST_MP(mp_isend_post_on_stream(&sends[0], stream));
  MESHPOST_MP(mp_wait_all(2, receives));
  MESHPOST_MP(mp_wait_all(2, sends));
  MESHPOST_MP(mp_desc_queue_free(&queue));
  cudaStreamDestroy(stream);
}

TEST(MpSessions, take_calls_of_two_threads_for_one_stream) {
  Peers const peers;
  constexpr int each = 100;
  Registered<char> mine(4 * each);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  std::vector<mp_request_t> receives(2 * each);
  for (auto& one : receives) MESHPOST_MP(mp_irecv(mine.values.data(), 1, 0, &mine.reg, &one));
  auto const sends = [&](int thread) {
    for (int i = 0; i < each; ++i) {
      mp_request_t send;
      char* const from = &mine.values[static_cast<std::size_t>((2 + thread) * each + i)];
      EXPECT_EQ(mp_send_on_stream(from, 1, 0, &mine.reg, &send, stream), MP_SUCCESS);
    }
  };
  std::thread other([&] { sends(1); });
  sends(0);
  other.join();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  MESHPOST_MP(mp_wait_all(2 * each, receives.data()));
  cudaStreamDestroy(stream);
}

// With a GPU the message could not come: see docs/libmp.md.
TEST(MpSessions, let_a_copy_of_a_cpu_device_wait_for_the_null_stream) {
  if (&default_backend() != &host_backend()) GTEST_SKIP() << "there is a GPU";
  Peers const peers;
  Registered<char> mine(10, 'n');
  void* target = nullptr;
  ASSERT_EQ(cudaMalloc(&target, 10), cudaSuccess);
  mp_reg_t reg;
  MESHPOST_MP(mp_register(target, 10, &reg));
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(target, 10, 0, &reg, &receive));
  MESHPOST_MP(mp_wait_on_stream(&receive, nullptr));
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    mp_request_t send;
    EXPECT_EQ(mp_isend(mine.values.data(), 10, 0, &mine.reg, &send), MP_SUCCESS);
  });
  std::vector<char> come(10);
  EXPECT_EQ(cudaMemcpy(come.data(), target, 10, cudaMemcpyDeviceToHost), cudaSuccess);
  other.join();
  EXPECT_EQ(come, mine.values);
  MESHPOST_MP(mp_deregister(&reg));
  cudaFree(target);
}

}  // namespace
}  // namespace meshpost
