// The host's half: copies to the device and back, several runs, times, and misuse.
#include "dcuda.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::DeviceArray;
using test::error_of;
using test::Program;
using test::says;

__global__ void nothing(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_gpu_finish(gst);
}

struct Counted {
  int runs;
  int sizes[2];
  bool null;
};
__global__ void count_run(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  Counted* data = nullptr;
  dcuda_get_data(gst, reinterpret_cast<void**>(&data));
  int rank = -1;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  if (data && rank == 0 && threadIdx.x == 0) {
    ++data->runs;
    dcuda_comm_size(gst, DCUDA_COMM_WORLD, &data->sizes[0]);
    dcuda_comm_size(gst, DCUDA_COMM_DEVICE, &data->sizes[1]);
  }
  dcuda_gpu_finish(gst);
}

struct Places {
  int* ranks;    // by block: world rank, device rank
  int* threads;  // by block: threads that report that they ran
};
__global__ void say_places(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  __shared__ int seen[64];
  dcuda_gpu_init(dcuda, gst);
  Places* data = nullptr;
  dcuda_get_data(gst, reinterpret_cast<void**>(&data));
  seen[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &data->ranks[2 * blockIdx.x]);
    dcuda_comm_rank(gst, DCUDA_COMM_DEVICE, &data->ranks[2 * blockIdx.x + 1]);
    int sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += seen[i];
    data->threads[blockIdx.x] = gridDim.x == 5 ? sum : -1;
  }
  dcuda_gpu_finish(gst);
}

__global__ void take_times(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_start_cpu_timer(gst);
  dcuda_start_cpu_timer(gst);
  dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
  dcuda_stop_cpu_timer(gst);
  for (int i = 0; i < 100; ++i) dcuda_comm_barrier(gst, DCUDA_COMM_DEVICE);
  dcuda_stop_cpu_timer(gst);
  dcuda_gpu_finish(gst);
}

TEST(DcudaHost, says_who_the_ranks_are) {
  Program const program(nothing, 5);
  dcuda_rank_info info{};
  dcuda_host_get_rank_info(program.context(), &info);
  EXPECT_EQ(info.rank_count, 5);
  EXPECT_EQ(info.rank_responsible, 5);
  EXPECT_EQ(info.rank_start, 0);
  EXPECT_EQ(info.device_count, 1);
  EXPECT_EQ(info.device_index, 0);
  EXPECT_EQ(info.node_count, 1);
  EXPECT_EQ(info.node_index, 0);
  EXPECT_EQ(info.process_count, 1);
  EXPECT_EQ(info.process_index, 0);
}

TEST(DcudaHost, copies_data_in_and_back_in_every_run) {
  Program const program(count_run, 3);
  Counted data{};
  for (int run = 1; run <= 3; ++run) {
    EXPECT_GT(dcuda_host_run(program.context(), &data, sizeof data), 0);
    EXPECT_EQ(data.runs, run);
  }
  EXPECT_EQ(data.sizes[0], 3);
  EXPECT_EQ(data.sizes[1], 3);
}

TEST(DcudaHost, runs_without_data) { EXPECT_GT(Program(count_run).run(), 0); }

TEST(DcudaHost, runs_larger_data_after_smaller) {
  Program const program(nothing);
  for (std::size_t const size : {1u, 100'000u, 10u}) {
    std::vector<char> data(size, 'x');
    dcuda_host_run(program.context(), data.data(), data.size());
    EXPECT_EQ(data, std::vector<char>(size, 'x'));
  }
}

TEST(DcudaHost, threads_and_blocks_are_those_of_cuda) {
  constexpr int ranks = 5, threads = 37;
  DeviceArray<int> numbers(2 * ranks), sums(ranks);
  Program(say_places, ranks, threads).run(Places{numbers.data(), sums.data()});
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(numbers.read()[2 * r], r);
    EXPECT_EQ(numbers.read()[2 * r + 1], r);
    EXPECT_EQ(sums.read()[r], threads * (threads + 1) / 2);
  }
}

TEST(DcudaHost, each_stop_takes_the_time_since_the_last_start) {
  Program const program(take_times);
  EXPECT_TRUE(dcuda_host_get_timings(program.context()).empty());
  double const total = program.run();
  auto const timings = dcuda_host_get_timings(program.context());
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_GT(timings[0], 0);
  EXPECT_GE(timings[1], timings[0]);
  EXPECT_LE(timings[1], total);
  program.run();
  EXPECT_EQ(dcuda_host_get_timings(program.context()).size(), 2u) << "of the last run only";
}

TEST(DcudaHost, programs_take_turns_on_a_device) {
  Program const one(count_run, 2), other(count_run, 3);
  EXPECT_EQ(one.run(Counted{}).sizes[0], 2);
  EXPECT_EQ(other.run(Counted{}).sizes[0], 3);
}

TEST(DcudaHostMisuse, is_named_at_init) {
  dcuda_host_context_handle ctx = nullptr;
  auto const init = [&](dcuda_host_context_handle* at, dcuda_kernel_t kernel, int threads) {
    return error_of([&] { dcuda_host_init(test::one_device(2), at, kernel, threads); });
  };
  EXPECT_TRUE(
      says(init(nullptr, nothing, 1), Kind::bad_argument, {"dcuda_host_init", "context is null"}));
  EXPECT_TRUE(
      says(init(&ctx, nullptr, 1), Kind::bad_argument, {"dcuda_host_init", "kernel is null"}));
  for (int const threads : {0, -1, 1025})
    EXPECT_TRUE(says(init(&ctx, nothing, threads), Kind::bad_argument,
                     {std::to_string(threads) + " threads", "1 to 1024"}));
  EXPECT_EQ(ctx, nullptr);
}

TEST(DcudaHostMisuse, wrong_devices_are_refused_with_the_remedy) {
  dcuda_host_context_handle ctx = nullptr;
  auto const init = [&](std::string const& devices) {
    auto options = test::one_device(2);
    options.devices = devices;
    return error_of([&] { dcuda_host_init(options, &ctx, nothing, 1); });
  };
  if (compat::by_nvcc) {
    EXPECT_TRUE(says(init("cpu:1"), Kind::bad_argument, {"GPUs only", "MESHPOST_CUDA is off"}));
  } else {
    EXPECT_TRUE(says(init("cpu:3"), Kind::bad_argument,
                     {"3 devices", "drives one", "MESHPOST_DEVICES=cpu:1"}));
    EXPECT_TRUE(
        says(init("cuda:0"), Kind::bad_argument, {"CPU devices only", "meshpost_add_executable"}));
  }
}

TEST(DcudaHostMisuse, a_finished_context_is_found_out) {
  dcuda_host_context_handle ctx = nullptr;
  dcuda_host_init(test::one_device(2), &ctx, nothing, 1);
  dcuda_host_run(ctx);
  dcuda_host_finish(ctx);
  dcuda_rank_info info{};
  EXPECT_TRUE(says(error_of([&] { dcuda_host_run(ctx); }), Kind::misuse,
                   {"dcuda_host_run", "dcuda_host_finish"}));
  EXPECT_TRUE(says(error_of([&] { dcuda_host_get_rank_info(ctx, &info); }), Kind::misuse,
                   {"dcuda_host_finish"}));
  EXPECT_TRUE(
      says(error_of([&] { dcuda_host_get_timings(ctx); }), Kind::misuse, {"dcuda_host_finish"}));
  EXPECT_TRUE(says(error_of([&] { dcuda_host_finish(ctx); }), Kind::misuse, {"dcuda_host_finish"}));
}

TEST(DcudaHostMisuse, null_is_found_out) {
  EXPECT_TRUE(
      says(error_of([] { dcuda_host_run(nullptr); }), Kind::misuse, {"the context is null"}));
  Program const program(nothing);
  EXPECT_TRUE(says(error_of([&] { dcuda_host_get_rank_info(program.context(), nullptr); }),
                   Kind::bad_argument, {"null"}));
  EXPECT_TRUE(says(error_of([&] { dcuda_host_run(program.context(), nullptr, 8); }),
                   Kind::bad_argument, {"8 bytes", "null"}));
}

}  // namespace
}  // namespace meshpost
