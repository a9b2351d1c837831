// The sum of reduction.cpp, in the optimised form that the dCUDA thesis describes below
// listing 3.2. First the ranks of each device add up their sums in place: dcuda_notify, and no
// copies. Then one rank a device takes part, so each device but the first puts once to another one.
#include <cstdint>
#include <iostream>
#include <vector>
#include "dcuda_device.cu.h"
#include "dcuda_host.h"
#define THREADS_PER_BLOCK 128

struct user_data {
  double* data;    // THREADS_PER_BLOCK values of each rank of this device
  double* buffer;  // behind them: a value from each other device
  double result;
};

__global__ void kernel(dcuda_context_handle dcuda) {
  int size, rank, local_size, local_rank;
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_comm_size(gst, DCUDA_COMM_DEVICE, &local_size);
  dcuda_comm_rank(gst, DCUDA_COMM_DEVICE, &local_rank);
  user_data* data;
  dcuda_get_data(gst, (void**)&data);
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, data->data, 2 * local_size * blockDim.x * sizeof(double),
                   &win);

  double* sums = data->data;  // a rank's sum is its first value
  int mine = local_rank * blockDim.x;
  if (threadIdx.x == 0)
    for (int i = 1; i < (int)blockDim.x; i++) sums[mine] += sums[mine + i];

  // on the device: a notification says that the other rank's sum may be read where it is
  for (int step = 1, round = 0; step < local_size; step *= 2, round++) {
    bool send = local_rank % (2 * step) == step;
    bool recv = local_rank % (2 * step) == 0 && local_rank + step < local_size;
    if (send) dcuda_notify(gst, local_rank - step, DCUDA_COMM_DEVICE, round);
    if (recv) {
      dcuda_wait_notifications(gst, round, 1);
      if (threadIdx.x == 0) sums[mine] += sums[mine + step * blockDim.x];
    }
  }

  // between devices: the first rank of each, which has tags of its own
  int device = rank / local_size, devices = size / local_size;
  for (int step = 1, round = 128; step < devices && local_rank == 0; step *= 2, round++) {
    bool send = device % (2 * step) == step;
    bool recv = device % (2 * step) == 0 && device + step < devices;
    if (send) {
      // The place depends on the round, because a later round's value may arrive first.
      int offset = (local_size * blockDim.x + (round - 128)) * sizeof(double);
      dcuda_put_notify(gst, win, rank - step * local_size, offset, sizeof(double), sums, round);
    }
    if (recv) {
      dcuda_wait_notifications(gst, round, 1);
      if (threadIdx.x == 0) sums[0] += data->buffer[round - 128];
    }
  }

  if (rank == 0 && threadIdx.x == 0) data->result = sums[0];
  dcuda_win_free(gst, win);
  dcuda_gpu_finish(gst);
}

int main(int argc, char** argv) {
  dcuda_host_context_handle dcuda_host;
  dcuda_host_init(argc, argv, &dcuda_host, kernel, THREADS_PER_BLOCK);
  dcuda_rank_info info;
  dcuda_host_get_rank_info(dcuda_host, &info);

  // Every rank of the world has other values, so a rank that is left out changes the sum.
  int size = info.rank_responsible * THREADS_PER_BLOCK;
  std::vector<double> values(size);
  for (int i = 0; i < size; i++) values[i] = info.rank_start * THREADS_PER_BLOCK + i + 1;
  user_data userdata = {};
  cudaMalloc(&userdata.data, 2 * size * sizeof(double));
  userdata.buffer = &userdata.data[size];
  cudaMemcpy(userdata.data, values.data(), size * sizeof(double), cudaMemcpyHostToDevice);
  dcuda_host_run(dcuda_host, &userdata, sizeof(userdata));

  bool right = true;
  if (info.rank_start == 0) {
    double count = double(info.rank_count) * THREADS_PER_BLOCK;
    double expected = count * (count + 1) / 2;  // integers below 2^53: exact in any order
    right = userdata.result == expected;
    std::cout << "Ranks: " << info.rank_count << std::endl;
    std::cout << "Sum = " << std::uint64_t(userdata.result) << std::endl;
    if (!right) std::cerr << "the right sum is " << std::uint64_t(expected) << std::endl;
  }
  cudaFree(userdata.data);
  dcuda_host_finish(dcuda_host);
  return right ? 0 : 1;
}
