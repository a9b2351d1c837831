// Lines that ranks log while they run.
#include <algorithm>

#include "dcuda.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::Program;

__global__ void lines(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_log log = dcuda_log_get(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  log << "rank " << rank << " has {" << 1.5 << "} and " << 'c' << ' ' << true << log.flush;
  if (rank == 0 && threadIdx.x == 0) log << "by one thread " << 7u << log.flush;
  if (rank == 0) {
    for (int i = 0; i < 10; ++i) log << i << " ";
    log << log.flush;
  }
  dcuda_gpu_finish(gst);
}

TEST(DcudaLog, a_line_of_text_and_values_comes_once_for_each_rank) {
  test::Listener const listener;
  Program(lines, 3).run();
  auto const logged = listener.lines();
  for (unsigned rank = 0; rank < 3; ++rank) {
    std::pair const line{rank, "rank " + std::to_string(rank) + " has {1.5} and c true"};
    EXPECT_EQ(std::ranges::count(logged, line), 1) << line.second;
  }
}

TEST(DcudaLog, one_thread_may_log_alone) {
  test::Listener const listener;
  Program(lines, 1).run();
  EXPECT_EQ(listener.lines()[1].second, "by one thread 7");
}

TEST(DcudaLog, what_is_too_long_goes_on_in_the_next_line) {
  test::Listener const listener;
  Program(lines, 1).run();
  ASSERT_EQ(listener.lines().size(), 4u);
  EXPECT_EQ(listener.lines()[2].second, "0 1 2 3 4 5 6 7 ");
  EXPECT_EQ(listener.lines()[3].second, "8 9 ");
}

__global__ void long_text(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_log log = dcuda_log_get(gst);
  for (int i = 0; i < 40; ++i) log << "{12345}";
  log << log.flush;
  dcuda_gpu_finish(gst);
}

TEST(DcudaLog, no_character_of_a_long_text_is_lost) {
  test::Listener const listener;
  Program(long_text, 1).run();
  std::string whole, expected;
  for (auto const& line : listener.lines()) whole += line.second;
  for (int i = 0; i < 40; ++i) expected += "{12345}";
  EXPECT_EQ(whole, expected);
}

// More lines than the ring holds.
__global__ void many(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_log log = dcuda_log_get(gst);
  for (int i = 0; i < 1000; ++i) log << "line " << i << log.flush;
  dcuda_gpu_finish(gst);
}

TEST(DcudaLog, none_of_many_lines_is_lost) {
  test::Listener const listener;
  Program(many, 4).run();
  EXPECT_EQ(listener.lines().size(), 4000u);
}

}  // namespace
}  // namespace meshpost
