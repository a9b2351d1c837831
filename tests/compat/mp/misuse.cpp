// Wrong use of LibMP, and the defects of the original.
#include "peers.hpp"
#include "runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <memory>
#include <thread>

#include "compat/mp/engine.hpp"

namespace meshpost {
namespace {

using test::Peers;
using test::Registered;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

void expect_failure(int status, std::vector<std::string> const& pieces) {
  EXPECT_EQ(status, MP_FAILURE);
  for (auto const& piece : pieces) EXPECT_THAT(mp_last_error(), HasSubstr(piece));
}

TEST(MpMisuse, of_windows_is_an_error_that_names_the_limit) {
  Peers const peers;
  Registered<char> box(100), mine(200);
  mp_window_t window;
  MESHPOST_MP(mp_window_create(box.values.data(), 100, &window));
  mp_request_t request;
  auto const put = [&](int size, std::size_t displacement) {
    return mp_iput(mine.values.data(), size, &mine.reg, 0, displacement, &window, &request, 0);
  };
  EXPECT_EQ(put(100, 0), MP_SUCCESS);
  MESHPOST_MP(mp_wait(&request));
  EXPECT_EQ(put(0, 100), MP_SUCCESS);
  MESHPOST_MP(mp_wait(&request));
  // The original looks at the offset alone.
  expect_failure(put(2, 99), {"mp_iput", "2 bytes at 99", "process 0", "it has 100 bytes"});
  expect_failure(put(101, 0), {"101 bytes at 0"});
  expect_failure(put(1, 100), {"1 bytes at 100"});
  expect_failure(put(10, SIZE_MAX - 5), {"it has 100 bytes"});  // the sum is small
  expect_failure(mp_iget(mine.values.data(), 2, &mine.reg, 0, 99, &window, &request),
                 {"mp_iget", "2 bytes at 99"});
  expect_failure(mp_put_prepare(mine.values.data(), 2, &mine.reg, 0, 99, &window, &request, 0),
                 {"mp_put_prepare"});
  expect_failure(put(-1, 0), {"-1 bytes"});
  expect_failure(mp_iput(mine.values.data(), 1, &mine.reg, 0, 0, &window, &request, 8), {"flags"});
  MESHPOST_MP(mp_window_destroy(&window));
  expect_failure(put(1, 0), {"no such window"});
}

TEST(MpMisuse, of_messages_is_an_error_that_names_the_value) {
  mp_request_t request = nullptr;
  expect_failure(mp_wait(&request), {"mp_init was not called"});
  Peers const peers;
  Registered<char> mine(100);
  auto const send = [&](void* memory, int size, int peer) {
    return mp_isend(memory, size, peer, &mine.reg, &request);
  };
  expect_failure(send(mine.values.data(), 1, 3), {"mp_isend", "process 3", "1 peers"});
  expect_failure(send(mine.values.data(), 1, -1), {"process -1"});
  expect_failure(send(mine.values.data(), 101, 0), {"101 bytes", "100 bytes", "are registered"});
  expect_failure(send(mine.values.data() + 1, 100, 0), {"are registered"});
  expect_failure(send(nullptr, 1, 0), {"the memory is null"});
  expect_failure(mp_isend(mine.values.data(), 1, 0, nullptr, &request), {"registration is null"});
  expect_failure(mp_wait(&request), {"no such request"});
  MESHPOST_MP(mp_send_prepare(mine.values.data(), 1, 0, &mine.reg, &request));
  expect_failure(mp_wait(&request), {"send of 1 bytes to process 0", "prepared, and not posted"});
  expect_failure(mp_init_job(nullptr, 0, 0, 0, nullptr, nullptr), {"mp_init", "called before"});
  int value = 0;
  EXPECT_EQ(mp_query_param(MP_PARAM_VERSION, &value), MP_SUCCESS);
  EXPECT_TRUE(MP_API_VERSION_COMPATIBLE(value));
  expect_failure(mp_query_param(MP_NUM_PARAMS, &value), {"no parameter"});
}

TEST(MpMisuse, a_message_longer_than_its_receive_fails_all_later_calls) {
  Peers const peers;
  Registered<char> mine(100), short_one(99);
  mp_request_t receive, send;
  MESHPOST_MP(mp_irecv(short_one.values.data(), 99, 0, &short_one.reg, &receive));
  MESHPOST_MP(mp_isend(mine.values.data(), 100, 0, &mine.reg, &send));
  expect_failure(mp_wait(&receive), {"a message of 100 bytes", "for 99 bytes"});
  expect_failure(mp_isend(mine.values.data(), 1, 0, &mine.reg, &send), {"an operation has failed"});
}

TEST(MpWaits, have_their_own_conditions) {
  Peers const peers;
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  alignas(64) static uint32_t word;
  struct Case {
    int flags;
    uint32_t value, no, yes;
  };
  // The original maps EQ to >, and AND to GEQ, among others.
  Case const cases[] = {{MP_WAIT_EQ, 5, 6, 5},           {MP_WAIT_EQ, 5, 4, 5},
                        {MP_WAIT_GEQ, 5, 4, 5},          {MP_WAIT_GEQ, 5, 4, 6},
                        {MP_WAIT_GEQ, 2, 0xffffffff, 3}, {MP_WAIT_GEQ, 0xffffffff, 0xfffffffe, 1},
                        {MP_WAIT_AND, 4, 3, 6},          {MP_WAIT_AND, 4, 8, 4}};
  for (auto const& one : cases) {
    __atomic_store_n(&word, one.no, __ATOMIC_RELEASE);
    MESHPOST_MP(mp_wait32_on_stream(&word, one.value, one.flags, stream));
    std::atomic<bool> over = false;
    std::thread waiter([&] {
      EXPECT_EQ(mp_wait32(&word, one.value, one.flags), MP_SUCCESS);
      over = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(over);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    __atomic_store_n(&word, one.yes, __ATOMIC_RELEASE);
    waiter.join();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  expect_failure(mp_wait32(&word, 1, 3), {"mp_wait32", "flags are 3"});
  expect_failure(mp_wait32_on_stream(nullptr, 1, MP_WAIT_EQ, stream), {"the word is null"});
  cudaStreamDestroy(stream);
}

Role const late("mp_late", [] {
  Peers const peers;
  Registered<char> mine(1000);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  // A stream that is busy is not late.
  auto const busy = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(700)); };
  mp_request_t send, taken;
  MESHPOST_MP(mp_irecv(mine.values.data(), 10, 0, &mine.reg, &taken));
  if (cudaLaunchHostFunc(stream, busy, nullptr) != cudaSuccess) throw std::runtime_error("no work");
  MESHPOST_MP(mp_isend_on_stream(mine.values.data() + 10, 10, 0, &mine.reg, &send, stream));
  MESHPOST_MP(mp_wait(&send));
  MESHPOST_MP(mp_wait(&taken));
  static uint32_t word = 0;
  if (mp_wait32(&word, 3, MP_WAIT_EQ) != MP_FAILURE) throw std::runtime_error("no error");
  test::say(std::string("word: ") + mp_last_error());
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(mine.values.data(), 1000, 0, &mine.reg, &receive));
  MESHPOST_MP(mp_wait_on_stream(&receive, stream));
  cudaStreamSynchronize(stream);  // its wait ends, too
  if (mp_progress_all(0, nullptr) != MP_FAILURE) throw std::runtime_error("no error");
  if (mp_wait(&receive) != MP_FAILURE) throw std::runtime_error("no error");
  test::say(std::string("stream: ") + mp_last_error());
  cudaStreamDestroy(stream);
});

TEST(MpWaits, end_after_the_deadline) {
  test::Job job("mp_late", 1, {{"MESHPOST_DEADLINE", "0.3"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out,
              AllOf(HasSubstr("word: mp_wait32"), HasSubstr("is 0; 3 is awaited"),
                    HasSubstr("stream: "), HasSubstr("receive of 1000 bytes from process 0"),
                    HasSubstr("nothing has come for 0.3 s"), HasSubstr("[deadline]")));
}

Role const left("mp_left", [] {
  auto peers = std::make_unique<Peers>();
  Registered<char> mine(1000);
  if (peers->own == 1) {
    test::say("waits");
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(mine.values.data(), 1000, 1, &mine.reg, &receive));
  test::say("waits");
  if (mp_wait(&receive) != MP_FAILURE) throw std::runtime_error("no error");
  test::say(mp_last_error());
});

TEST(MpWaits, end_when_the_peer_is_lost) { test::expect_the_loss_is_seen("mp_left"); }

// Processes of a job, in this one.
TEST(MpProcesses, may_be_more_than_128) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer leaves too few addresses for so many devices";
#endif
  namespace mp = compat::mp;
  constexpr u32 count = 150;
  WorldOptions options;
  options.devices = "cpu:" + std::to_string(count);
  options.ranks = 1;
  World world(options);
  mp::ChannelShape const shape{.processes = count, .slots = 8, .slot_bytes = 64};
  auto const window = world.window<std::byte>(shape.bytes(), Tags{0}, "channels");
  std::vector<std::unique_ptr<mp::Engine>> all;
  for (u32 own = 0; own < count; ++own) {
    std::vector<u32> const peers{(own + 1) % count, (own + count - 1) % count};
    all.push_back(std::make_unique<mp::Engine>(mp::Channels(window, shape, RankId{own}), peers,
                                               world.devices()[own],
                                               mp::Engine::Options{.thread = false}));
  }
  std::vector<u32> out(count), in(count, ~0u);
  std::vector<u64> receives;
  for (u32 own = 0; own < count; ++own) {
    out[own] = own;
    auto& engine = *all[own];
    receives.push_back(engine.prepare("receive", {.kind = mp::Task::receive,
                                                  .peer = (own + count - 1) % count,
                                                  .buffer = mp::Buffer(&in[own], sizeof(u32))}));
    engine.post("receive", receives.back());
    engine.post("send", engine.prepare("send", {.kind = mp::Task::send,
                                                .peer = (own + 1) % count,
                                                .buffer = mp::Buffer(&out[own], sizeof(u32))}));
  }
  for (auto const& engine : all) engine->progress();
  for (u32 own = 0; own < count; ++own) {
    EXPECT_TRUE(all[own]->complete("receive", receives[own]));
    EXPECT_EQ(in[own], (own + count - 1) % count);
  }
}

}  // namespace
}  // namespace meshpost
