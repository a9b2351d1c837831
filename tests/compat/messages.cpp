// Puts and notifications: delivery, order, the one space of tags, both communicators.
#include "dcuda.hpp"

namespace meshpost {
namespace {

using test::DeviceArray;
using test::Program;

struct Memory {
  int* words;
  int* found;  // by rank: values that the kernel saw
  int size;    // words of a rank
};

__device__ Memory memory_of(dcuda_state& gst) {
  void* data = nullptr;
  dcuda_get_data(gst, &data);
  return *static_cast<Memory*>(data);
}

// Each rank puts `size` words into the next rank's part, round after round, through its own part.
__global__ void ring(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int size = 0, rank = 0;
  dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  int* const mine = memory.words + 2 * memory.size * rank;  // received, then sent
  int const bytes = memory.size * static_cast<int>(sizeof(int));
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, mine, 2 * bytes, &win);
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = static_cast<int>(threadIdx.x); i < memory.size; i += static_cast<int>(blockDim.x))
      mine[memory.size + i] = 1000 * round + 10 * rank + i % 7;
    dcuda_put_notify(gst, win, (rank + 1) % size, 0, bytes, mine + memory.size, round % 256);
    dcuda_win_flush(gst, win);
    dcuda_wait_notifications(gst, round % 256, 1);
    int const before = (rank + size - 1) % size;
    for (int i = static_cast<int>(threadIdx.x); i < memory.size; i += static_cast<int>(blockDim.x))
      wrong += mine[i] != 1000 * round + 10 * before + i % 7;
    dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);  // before the part is written again
  }
  atomicAdd(&memory.found[rank], wrong);
  dcuda_win_free(gst, win);
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, put_notify_delivers_what_was_put) {
  for (int const threads : {1, 32, 128})
    for (int const words : {1, 3, 64, 1000}) {
      constexpr u32 ranks = 4;
      DeviceArray<int> memory(2 * words * ranks), found(ranks);
      Program(ring, ranks, threads).run(Memory{memory.data(), found.data(), words});
      EXPECT_EQ(found.read(), std::vector<int>(ranks))
          << threads << " threads, " << words << " words";
    }
}

// Rank 0 sends word after word without a notification, and one notification at the end.
__global__ void puts_then_notify(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  int* const mine = memory.words + memory.size * rank;
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, mine, memory.size * static_cast<int>(sizeof(int)), &win);
  if (rank == 0) {
    if (threadIdx.x == 0)
      for (int i = 0; i < memory.size; ++i) mine[i] = i + 1;
    for (int i = 0; i < memory.size; ++i) {
      int const offset = i * static_cast<int>(sizeof(int));
      dcuda_put(gst, win, 1, offset, sizeof(int), mine + i);
    }
    dcuda_notify(gst, 1, DCUDA_COMM_WORLD, 255);
  } else if (rank == 1) {
    dcuda_wait_notifications(gst, 255, 1);
    if (threadIdx.x == 0)
      for (int i = 0; i < memory.size; ++i) memory.found[1] += mine[i] != i + 1;
  }
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, a_notification_delivers_all_earlier_puts) {
  DeviceArray<int> memory(2 * 50), found(2);
  Program(puts_then_notify, 2).run(Memory{memory.data(), found.data(), 50});
  EXPECT_EQ(found.read()[1], 0);
  EXPECT_EQ(memory.read()[99], 50);
}

// Notifications of both kinds and over both communicators count in one space.
__global__ void one_space(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_win world, device;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, memory.words + rank, sizeof(int), &world);
  dcuda_win_create(gst, DCUDA_COMM_DEVICE, memory.words + rank, sizeof(int), &device);
  if (rank != 0) {
    dcuda_put_notify(gst, world, 0, 0, 0, nullptr, 9);
    dcuda_put_notify(gst, device, 0, 0, 0, nullptr, 9);
    dcuda_notify(gst, 0, DCUDA_COMM_WORLD, 9);
    dcuda_notify(gst, 0, DCUDA_COMM_DEVICE, 9);
  } else {
    int size = 0;
    dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
    dcuda_wait_notifications(gst, 9, 4 * (size - 1));
    int const more = dcuda_test_notifications(gst, 9, 1);
    if (threadIdx.x == 0) memory.found[0] = 1 + more;
  }
  dcuda_win_free(gst, device);
  dcuda_win_free(gst, world);
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, all_notifications_count_in_one_space_of_tags) {
  DeviceArray<int> memory(4), found(1);
  Program(one_space, 4).run(Memory{memory.data(), found.data(), 1});
  EXPECT_EQ(found.read()[0], 1);
}

__global__ void tests(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_DEVICE, &rank);
  if (rank == 1)
    for (int i = 0; i < 3; ++i) dcuda_notify(gst, 0, DCUDA_COMM_DEVICE, 4);
  dcuda_comm_barrier(gst, DCUDA_COMM_DEVICE);  // all three are there
  if (rank == 0) {
    int results[6];
    results[0] = dcuda_test_notifications(gst, 4, 4);  // too few: takes none
    results[1] = dcuda_test_notifications(gst, 5, 1);  // another tag
    results[2] = dcuda_test_notifications(gst, 4, 2);
    results[3] = dcuda_test_notifications(gst, 4, 2);  // one is left
    results[4] = dcuda_test_notifications(gst, 4, 0);
    results[5] = dcuda_test_notifications(gst, 4, 1);
    if (threadIdx.x == 0)
      for (int i = 0; i < 6; ++i) memory.found[i] = results[i];
  }
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, a_test_that_fails_consumes_nothing) {
  DeviceArray<int> found(6);
  Program(tests, 2).run(Memory{nullptr, found.data(), 0});
  EXPECT_EQ(found.read(), (std::vector<int>{0, 0, 1, 0, 1, 1}));
}

// Rank 1 polls with test, thousands of times, until rank 0 has sent.
__global__ void polls(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  if (rank == 0) {
    dcuda_wait_notifications(gst, 0, 1);
    dcuda_notify(gst, 1, DCUDA_COMM_WORLD, 1);
  } else {
    for (int i = 0; i < 3000; ++i)
      if (dcuda_test_notifications(gst, 1, 1) && threadIdx.x == 0) memory.found[0] = 1;
    dcuda_notify(gst, 0, DCUDA_COMM_WORLD, 0);
    while (!dcuda_test_notifications(gst, 1, 1)) {
    }
  }
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, polling_sees_the_notification_in_the_end) {
  DeviceArray<int> found(1);
  Program(polls, 2).run(Memory{nullptr, found.data(), 0});
  EXPECT_EQ(found.read()[0], 0);
}

// A rank may send to itself.
__global__ void to_itself(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Memory const memory = memory_of(gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  int* const mine = memory.words + 2 * rank;
  if (threadIdx.x == 0) mine[0] = rank + 7;
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_DEVICE, mine, 2 * sizeof(int), &win);
  dcuda_put_notify(gst, win, rank, sizeof(int), sizeof(int), mine, 3);
  dcuda_wait_notifications(gst, 3, 1);
  if (threadIdx.x == 0) memory.found[rank] = mine[1];
  dcuda_gpu_finish(gst);
}

TEST(DcudaMessages, a_rank_sends_to_itself) {
  DeviceArray<int> memory(6), found(3);
  Program(to_itself, 3).run(Memory{memory.data(), found.data(), 1});
  EXPECT_EQ(found.read(), (std::vector<int>{7, 8, 9}));
}

}  // namespace
}  // namespace meshpost
