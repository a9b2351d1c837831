// Windows that a kernel creates: sizes by rank, overlapping ones, many at a time, and impossible
// ones.
#include "dcuda.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::DeviceArray;
using test::Program;

struct WindowMemory {
  int* words;
  int* found;
};

__device__ WindowMemory window_memory_of(dcuda_state& gst) {
  void* data = nullptr;
  dcuda_get_data(gst, &data);
  return *static_cast<WindowMemory*>(data);
}

// All ranks expose the same words. Rank 0 "puts" word 0 onto itself, and word 1 to word 2.
__global__ void overlapping(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  WindowMemory const memory = window_memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, memory.words, 4 * sizeof(int), &win);
  if (rank == 0) {
    if (threadIdx.x == 0) memory.words[0] = 11, memory.words[1] = 22;
    dcuda_put_notify(gst, win, 1, 0, sizeof(int), memory.words, 6);
    dcuda_put_notify(gst, win, 1, 2 * sizeof(int), sizeof(int), memory.words + 1, 6);
  }
  if (rank == 1) {
    dcuda_wait_notifications(gst, 6, 2);
    if (threadIdx.x == 0) memory.found[1] = memory.words[0] + memory.words[2];
  }
  dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
  if (rank != 1) {
    int const notified = dcuda_test_notifications(gst, 6, 1);  // whose windows are the same memory
    if (threadIdx.x == 0) memory.found[rank] = notified;
  }
  dcuda_win_free(gst, win);
  dcuda_gpu_finish(gst);
}

TEST(DcudaWindows, of_overlapping_ones_only_the_target_is_notified) {
  DeviceArray<int> words(4), found(3);
  Program(overlapping, 3).run(WindowMemory{words.data(), found.data()});
  EXPECT_EQ(found.read(), (std::vector<int>{0, 33, 0}));
}

// Rank r exposes r words; each rank fills the last word of the next one that has any.
__global__ void sized_by_rank(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  WindowMemory const memory = window_memory_of(gst);
  int rank = 0, size = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
  int* const mine = memory.words + 8 * rank;
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, rank == 0 ? nullptr : mine,
                   rank * static_cast<int>(sizeof(int)), &win);
  if (threadIdx.x == 0) mine[0] = 100 + rank;
  if (rank != 0 && rank + 1 < size)
    dcuda_put_notify(gst, win, rank + 1, rank * static_cast<int>(sizeof(int)), sizeof(int), mine,
                     0);
  if (rank > 1) {
    dcuda_wait_notifications(gst, 0, 1);
    if (threadIdx.x == 0) memory.found[rank] = mine[rank - 1];
  }
  dcuda_win_free(gst, win);
  dcuda_gpu_finish(gst);
}

TEST(DcudaWindows, sizes_differ_by_rank_and_may_be_zero) {
  DeviceArray<int> words(8 * 5), found(5);
  Program(sized_by_rank, 5).run(WindowMemory{words.data(), found.data()});
  EXPECT_EQ(found.read(), (std::vector<int>{0, 0, 101, 102, 103}));
}

// The maximum number for each communicator, one more, and again after they were freed.
__global__ void all_there_are(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  __shared__ dcuda_win windows[2][64];
  dcuda_gpu_init(dcuda, gst);
  WindowMemory const memory = window_memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  int created = 0;
  for (int again = 0; again < 3; ++again) {
    for (int i = 0; i < 64; ++i)
      for (int const comm : {DCUDA_COMM_DEVICE, DCUDA_COMM_WORLD}) {
        dcuda_win win;
        dcuda_win_create(gst, comm, memory.words, 4, &win);
        created += !(win == DCUDA_WIN_NONE);
        if (threadIdx.x == 0) windows[comm][i] = win;
        __syncthreads();
      }
    for (int i = 0; i < 64; ++i)
      for (int const comm : {DCUDA_COMM_WORLD, DCUDA_COMM_DEVICE})
        dcuda_win_free(gst, windows[comm][i]);
  }
  if (threadIdx.x == 0) memory.found[rank] = created;
  dcuda_gpu_finish(gst);
}

TEST(DcudaWindows, sixty_four_of_each_communicator_exist_at_a_time) {
  test::Listener const listener;
  DeviceArray<int> words(1), found(3);
  Program(all_there_are, 3, 2).run(WindowMemory{words.data(), found.data()});
  EXPECT_EQ(found.read(), std::vector<int>(3, 3 * 2 * 64));
  EXPECT_TRUE(listener.lines().empty());
}

__global__ void one_too_many(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  WindowMemory const memory = window_memory_of(gst);
  int rank = 0, none = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_win win;
  for (int i = 0; i < 66; ++i) {
    dcuda_win_create(gst, DCUDA_COMM_WORLD, memory.words, 4, &win);
    none += win == DCUDA_WIN_NONE;
  }
  if (threadIdx.x == 0) memory.found[rank] = none;
  dcuda_gpu_finish(gst);
}

TEST(DcudaWindows, one_too_many_is_none) {
  test::Listener const listener;
  DeviceArray<int> words(1), found(3);
  Program(one_too_many, 3).run(WindowMemory{words.data(), found.data()});
  EXPECT_EQ(found.read(), std::vector<int>(3, 2));
  ASSERT_EQ(listener.lines().size(), 2u);
  EXPECT_EQ(
      listener.lines()[0].second,
      "dcuda_win_create gives DCUDA_WIN_NONE: there are 64 windows of this communicator already");
}

// The memory that rank 1 gives can't be a window: no rank gets one, and the next creation succeeds.
__global__ void impossible(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  WindowMemory const memory = window_memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_win negative, null, unknown, good;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, memory.words, rank == 1 ? -4 : 4, &negative);
  dcuda_win_create(gst, DCUDA_COMM_DEVICE, rank == 1 ? nullptr : memory.words, 4, &null);
  dcuda_win_create(gst, 2, memory.words, 4, &unknown);
  dcuda_win_create(gst, DCUDA_COMM_WORLD, memory.words, 4, &good);
  if (threadIdx.x == 0)
    memory.found[rank] = (negative == DCUDA_WIN_NONE) + 2 * (null == DCUDA_WIN_NONE) +
                         4 * (unknown == DCUDA_WIN_NONE) + 8 * (good != DCUDA_WIN_NONE);
  dcuda_gpu_finish(gst);
}

TEST(DcudaWindows, what_one_rank_can_not_expose_is_none_for_all) {
  test::Listener const listener;
  DeviceArray<int> words(1), found(3);
  Program(impossible, 3).run(WindowMemory{words.data(), found.data()});
  EXPECT_EQ(found.read(), std::vector<int>(3, 15));
  ASSERT_EQ(listener.lines().size(), 1u + 1u + 3u);
  EXPECT_EQ(listener.lines()[0].first, 1u);
  EXPECT_NE(listener.lines()[0].second.find("-4 bytes"), std::string::npos)
      << listener.lines()[0].second;
}

}  // namespace
}  // namespace meshpost
