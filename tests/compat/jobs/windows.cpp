// dCUDA programs of several processes: together they can do the same as one process.
#include <meshpost/compat/dcuda.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/job.hpp"

namespace meshpost {
namespace {

using test::require;
using test::Role;

constexpr int elements = 1000;  // of a rank

struct Data {
  int* window;  // of the device's ranks, one after the other: received words, then sent words
  int wrong;    // elements, counted by all of the process's ranks
};

// Every rank sends to the next and to the one across, in windows of the world and of the device.
__global__ void exchange(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  int size = 0, rank = 0, local = 0, locals = 0;
  dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_comm_size(gst, DCUDA_COMM_DEVICE, &locals);
  dcuda_comm_rank(gst, DCUDA_COMM_DEVICE, &local);
  Data* data = nullptr;
  dcuda_get_data(gst, reinterpret_cast<void**>(&data));
  int* const mine = data->window + 2 * elements * local;
  int const bytes = elements * static_cast<int>(sizeof(int));
  for (int round = 0; round < 5; ++round) {
    dcuda_win world, device;  // created and freed anew: tables are written again
    dcuda_win_create(gst, DCUDA_COMM_WORLD, mine, 2 * bytes, &world);
    dcuda_win_create(gst, DCUDA_COMM_DEVICE, mine, 2 * bytes, &device);
    for (int step : {1, size / 2}) {
      int const to = (rank + step) % size, from = (rank + size - step) % size;
      for (int i = static_cast<int>(threadIdx.x); i < elements; i += static_cast<int>(blockDim.x))
        mine[elements + i] = rank * 100'000 + round * 10'000 + step * 1000 + i;
      dcuda_put_notify(gst, world, to, 0, bytes, mine + elements, 3);
      dcuda_wait_notifications(gst, 3, 1);
      if (threadIdx.x == 0)
        for (int i = 0; i < elements; ++i)
          if (mine[i] != from * 100'000 + round * 10'000 + step * 1000 + i)
            atomicAdd(&data->wrong, 1);
      dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
    }
    dcuda_put_notify(gst, device, (local + 1) % locals, 4, 4, mine + elements, 4);
    dcuda_wait_notifications(gst, 4, 1);
    dcuda_win_free(gst, device);
    dcuda_win_free(gst, world);
  }
  dcuda_gpu_finish(gst);
}

void run_exchange(dcuda_host_context_handle context) {
  dcuda_rank_info info{};
  dcuda_host_get_rank_info(context, &info);
  Data data{};
  auto const bytes = sizeof(int) * 2 * elements * static_cast<std::size_t>(info.rank_responsible);
  for (int run = 0; run < 2; ++run) {
    require(cudaMalloc(&data.window, bytes) == cudaSuccess, "cudaMalloc");
    cudaMemset(data.window, 0, bytes);
    dcuda_host_run(context, &data, sizeof data);
    require(data.wrong == 0, std::to_string(data.wrong) + " elements are wrong");
    cudaFree(data.window);
  }
}

Role const exchanges("dcuda_exchange", [] {
  dcuda_host_context_handle context = nullptr;
  dcuda_host_init(0, nullptr, &context, exchange, 32);
  run_exchange(context);
  dcuda_host_finish(context);
});

TEST(DcudaJob, puts_and_notifies_between_ranks_of_several_processes) {
  for (u32 const processes : {2, 4}) {
    test::Job job("dcuda_exchange", processes, {{"MESHPOST_RANKS", "3"}});
    test::expect_well(job.wait());
  }
}

TEST(DcudaJob, reaches_other_nodes_too) {
  test::Job job("dcuda_exchange", 4, {{"MESHPOST_RANKS", "2"}}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_NODE", std::to_string(process % 2)}};
  });
  test::expect_well(job.wait());
}

// The thesis's command line, without a launcher.
Role const by_options("dcuda_options", [] {
  std::string const process = std::getenv("MESHPOST_PROCESS");
  for (auto const* name : {"MESHPOST_PROCESS", "MESHPOST_PROCESSES", "MESHPOST_RENDEZVOUS",
                           "MESHPOST_SECRET", "MESHPOST_LISTENER"})
    unsetenv(name);
  std::vector<std::string> words{"program", "-d", "0", "-n", "4", "-p", process, "-r", "localhost"};
  if (process == "0") words.emplace_back("-l");
  std::vector<char*> values;
  for (auto& word : words) values.push_back(word.data());
  for (int i = 0; i < 2; ++i) {  // several contexts, one after the other
    dcuda_host_context_handle context = nullptr;
    dcuda_host_init(static_cast<int>(values.size()), values.data(), &context, exchange, 32);
    run_exchange(context);
    dcuda_host_finish(context);
  }
});

TEST(DcudaJob, is_started_by_the_thesiss_options) {
  test::Job job("dcuda_options", 4, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

__global__ void nothing(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_gpu_finish(gst);
}

Role const places("dcuda_places", [] {
  dcuda_host_context_handle context = nullptr;
  dcuda_host_init(0, nullptr, &context, nothing, 1);
  dcuda_rank_info info{};
  dcuda_host_get_rank_info(context, &info);
  int const process = std::atoi(std::getenv("MESHPOST_PROCESS"));
  require(info.rank_count == 12 && info.rank_responsible == 3, "numbers of ranks");
  require(info.rank_start == 3 * process, "first rank");
  require(info.process_count == 4 && info.process_index == process, "process");
  require(info.node_count == 2 && info.node_index == (process + 1) / 2 % 2, "node");
  require(info.device_count == 2 && info.device_index == process / 2, "device of the node");
  dcuda_host_run(context);
  dcuda_host_finish(context);
});

TEST(DcudaJob, says_who_the_ranks_are) {
  test::Job job("dcuda_places", 4, {{"MESHPOST_RANKS", "3"}}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_NODE", process == 1 || process == 2 ? "b" : "a"}};
  });
  test::expect_well(job.wait());
}

struct Foreign {
  char* bytes;
  bool none;
};
__global__ void create(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Foreign* data = nullptr;
  dcuda_get_data(gst, reinterpret_cast<void**>(&data));
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, data->bytes, 64, &win);
  if (threadIdx.x == 0) data->none = win == DCUDA_WIN_NONE;
  dcuda_gpu_finish(gst);
}

Role const foreign("dcuda_foreign", [] {
  Foreign early{};
  cudaMalloc(&early.bytes, 64);
  dcuda_host_context_handle context = nullptr;
  dcuda_host_init(0, nullptr, &context, create, 1);
  Foreign late{};
  require(cudaMalloc(&late.bytes, 64) == cudaSuccess, "cudaMalloc");
  dcuda_host_run(context, &late, sizeof late);
  require(!late.none, "memory of cudaMalloc");
  // A rank of one process gives memory that the others can't reach: no rank gets a window.
  auto& one = std::string(std::getenv("MESHPOST_PROCESS")) == "1" ? early : late;
  dcuda_host_run(context, &one, sizeof one);
  require(one.none, "memory that others can't reach");
  void* much = nullptr;
  require(cudaMalloc(&much, std::size_t{2} << 20) == cudaErrorMemoryAllocation,
          "more than there is");
  dcuda_host_finish(context);
  require(cudaMemset(late.bytes, 'x', 1) == cudaSuccess, "it is there until it is freed");
  cudaFree(late.bytes);
  cudaFree(early.bytes);
});

TEST(DcudaJob, names_memory_that_others_cannot_reach_and_that_is_used_up) {
  test::Job job("dcuda_foreign", 2, {{"MESHPOST_RANKS", "1"}, {"MESHPOST_DCUDA_MEMORY", "1"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[1].out, testing::HasSubstr("take them from cudaMalloc"));
  EXPECT_THAT(all[0].out, testing::HasSubstr("raise MESHPOST_DCUDA_MEMORY"));
}

Role const confused("dcuda_confused", [] {
  test::print_error([] {
    char words[][4] = {"p", "-n", "3", "-p", "0"};
    char* values[] = {words[0], words[1], words[2], words[3], words[4]};
    dcuda_host_context_handle context = nullptr;
    dcuda_host_init(5, values, &context, nothing, 1);
  });
});

TEST(DcudaJob, of_another_number_than_the_launchers_is_refused) {
  test::Job job("dcuda_confused", 2);
  auto const& all = job.wait();
  EXPECT_THAT(all[1].out, testing::HasSubstr("process 0 of 3"));
  EXPECT_THAT(all[1].out, testing::HasSubstr("1 of 2"));
}

}  // namespace
}  // namespace meshpost
