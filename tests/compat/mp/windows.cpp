// LibMP's windows, waits for words and descriptor queues.
#include "peers.hpp"
#include "runs.hpp"

namespace meshpost {
namespace {

using test::Peers;
using test::Registered;
using test::require;
using test::Role;

Role const windows("mp_windows", [] {
  Peers const peers;
  // Sizes differ: the process's number is in them.
  Registered<int> box(100'000 + static_cast<std::size_t>(peers.own), -1), mine(100'000);
  mp_window_t window;
  MESHPOST_MP(mp_window_create(box.values.data(), box.values.size() * sizeof(int), &window));
  for (std::size_t i = 0; i < mine.values.size(); ++i)
    mine.values[i] = peers.own * 1000 + static_cast<int>(i % 1000);
  std::size_t const behind = 99'000 + static_cast<std::size_t>(peers.next());  // the last 1000
  mp_request_t put, last, get, message;
  Registered<int> word(1), told(1);
  MESHPOST_MP(mp_irecv(told.values.data(), 4, peers.previous(), &told.reg, &message));
  MESHPOST_MP(
      mp_iput(mine.values.data(), 4 * 99'000, &mine.reg, peers.next(), 0, &window, &put, 0));
  MESHPOST_MP(mp_iput(mine.values.data(), 4 * 1000, &mine.reg, peers.next(), 4 * behind, &window,
                      &last, MP_PUT_NOWAIT));
  // A message behind puts tells that they have come.
  mp_request_t send;
  MESHPOST_MP(mp_isend(word.values.data(), 4, peers.next(), &word.reg, &send));
  MESHPOST_MP(mp_wait(&message));
  for (std::size_t i = 0; i < 1000; ++i) {
    require(box.values[i] == peers.previous() * 1000 + static_cast<int>(i), "the put has come");
    require(box.values[99'000 + static_cast<std::size_t>(peers.own) + i] ==
                peers.previous() * 1000 + static_cast<int>(i),
            "the put behind it has come");
  }
  MESHPOST_MP(mp_wait(&put));
  MESHPOST_MP(mp_wait(&send));
  Registered<int> got(1000, -1);
  MESHPOST_MP(mp_iget(got.values.data(), 4000, &got.reg, peers.next(), 4 * behind, &window, &get));
  MESHPOST_MP(mp_wait(&get));
  require(got.values == std::vector<int>(mine.values.begin(), mine.values.begin() + 1000),
          "the get");
  peers.meet();  // others still use the memory
  MESHPOST_MP(mp_window_destroy(&window));
});

TEST(MpWindows, are_written_and_read) {
  test::Job job("mp_windows", 3);
  test::expect_well(job.wait());
}
TEST(MpWindows, of_processes_out_of_reach_are_written_and_read) {
  test::run_out_of_reach("mp_windows", 2);
}
TEST(MpWindows, are_the_own_process_s_too) {
  test::Job job("mp_windows", 1);
  test::expect_well(job.wait());
}

// The receiver puts a growing number into a word of the sender, who waits for it in its stream.
Role const ready("mp_ready", [] {
  Peers const peers;
  Registered<uint32_t> table(static_cast<std::size_t>(peers.count)), next(1, 0xfffffffe);
  for (auto& word : table.values) word = 0xfffffffe;  // the counts wrap
  mp_window_t window;
  MESHPOST_MP(mp_window_create(table.values.data(), 4 * table.values.size(), &window));
  cudaStream_t stream;
  require(cudaStreamCreate(&stream) == cudaSuccess, "a stream");
  Registered<int> in(1000, -1), out(1000);
  uint32_t expected = 0xfffffffe;
  for (int round = 0; round < 20; ++round) {
    mp_request_t receive, send, put;
    MESHPOST_MP(mp_irecv(in.values.data(), in.bytes(), peers.previous(), &in.reg, &receive));
    ++next.values[0];
    MESHPOST_MP(mp_iput_on_stream(next.values.data(), 4, &next.reg, peers.previous(),
                                  4 * static_cast<std::size_t>(peers.own), &window, &put,
                                  MP_PUT_INLINE | MP_PUT_NOWAIT, stream));
    ++expected;
    MESHPOST_MP(mp_wait_dword_geq_on_stream(&table.values[static_cast<std::size_t>(peers.next())],
                                            expected, stream));
    for (auto& value : out.values) value = 1000 * peers.own + round;
    MESHPOST_MP(
        mp_isend_on_stream(out.values.data(), out.bytes(), peers.next(), &out.reg, &send, stream));
    MESHPOST_MP(mp_wait_on_stream(&receive, stream));
    require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream ends");
    require(in.values == std::vector<int>(1000, 1000 * peers.previous() + round),
            "the round's numbers");
    MESHPOST_MP(mp_wait(&send));
  }
  require(cudaStreamDestroy(stream) == cudaSuccess, "the stream");
  peers.meet();
});

TEST(MpWindows, tell_a_stream_that_its_receiver_is_ready) {
  test::Job job("mp_ready", 3);
  test::expect_well(job.wait());
}

Role const queues("mp_queues", [] {
  Peers const peers;
  Registered<int> box(100, -1), mine(100), word(1, 7), come(1);
  mp_window_t window;
  MESHPOST_MP(mp_window_create(box.values.data(), 400, &window));
  cudaStream_t stream;
  require(cudaStreamCreate(&stream) == cudaSuccess, "a stream");
  mp_desc_queue_t queue;
  MESHPOST_MP(mp_desc_queue_alloc(&queue));
  alignas(64) static uint32_t opened, stored;
  for (int round = 1; round < 4; ++round) {
    opened = 0;
    for (auto& value : mine.values) value = round;
    mp_request_t put, send, receive;
    MESHPOST_MP(mp_irecv(come.values.data(), 4, peers.previous(), &come.reg, &receive));
    MESHPOST_MP(
        mp_put_prepare(mine.values.data(), 400, &mine.reg, peers.next(), 0, &window, &put, 0));
    MESHPOST_MP(mp_send_prepare(word.values.data(), 4, peers.next(), &word.reg, &send));
    MESHPOST_MP(mp_desc_queue_add_wait_value32(&queue, &opened, 5, MP_WAIT_EQ));
    MESHPOST_MP(mp_desc_queue_add_send(&queue, &put));
    MESHPOST_MP(mp_desc_queue_add_wait_send(&queue, &put));
    MESHPOST_MP(mp_desc_queue_add_send(&queue, &send));
    MESHPOST_MP(mp_desc_queue_add_wait_recv(&queue, &receive));
    MESHPOST_MP(mp_desc_queue_add_write_value32(&queue, &stored, static_cast<uint32_t>(round)));
    MESHPOST_MP(mp_desc_queue_post_on_stream(stream, &queue, 0));
    require(cudaStreamQuery(stream) == cudaErrorNotReady, "nobody has opened it");
    __atomic_store_n(&opened, 5u, __ATOMIC_RELEASE);
    MESHPOST_MP(mp_wait32(&stored, static_cast<uint32_t>(round), MP_WAIT_EQ));
    require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream ends");
    require(box.values == std::vector<int>(100, round), "the put came before the message");
    MESHPOST_MP(mp_wait(&send));
    peers.meet();  // nobody puts the next round before all have looked
  }
  MESHPOST_MP(mp_desc_queue_free(&queue));
});

TEST(MpQueues, are_posted_on_a_stream_in_one_call) {
  test::Job job("mp_queues", 2);
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
