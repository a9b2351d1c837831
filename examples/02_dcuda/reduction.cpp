// The example program of the dCUDA thesis (listings 3.1 and 3.2): all ranks sum up an array, first
// the threads' values in each rank, then the ranks' sums along a binomial tree. Comments that begin
// with "Listing" say what was changed and why. The rest is as printed, except for the check of the
// sum at the end.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include "dcuda_device.cu.h"
#include "dcuda_host.h"
#define THREADS_PER_BLOCK 128

struct user_data {
  double* data;
  double* buffer;
  bool is_leader;
  double result;
};

// Listing 3.1 uses the kernel before its declaration. Here the device code comes first.
__global__ void kernel(dcuda_context_handle dcuda) {
  int size, rank, local_size, local_rank;
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_log log = dcuda_log_get(gst);
  dcuda_comm_size(gst, DCUDA_COMM_WORLD, &size);
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  dcuda_comm_size(gst, DCUDA_COMM_DEVICE, &local_size);
  dcuda_comm_rank(gst, DCUDA_COMM_DEVICE, &local_rank);
  user_data* data;
  dcuda_get_data(gst, (void**)&data);

  // create windows
  dcuda_win win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, data->data, 2 * local_size * blockDim.x * sizeof(double),
                   &win);

  // timing
  dcuda_start_cpu_timer(gst);

  // block reduction
  if (threadIdx.x == 0) {
    for (int i = 1; i < (int)blockDim.x; i++)
      data->data[local_rank * blockDim.x] += data->data[local_rank * blockDim.x + i];
  }
  // Listing 3.2, line 29: a brace too many ended the kernel here.
  __syncthreads();  // Listing 3.2 has none: all threads put the sum of thread 0

  // global reduction
  int offset = (local_size * blockDim.x + rank) * sizeof(double);
  for (int step = 1, round = 0; step < size; step *= 2, round++) {
    int range = 2 * step;
    bool send = rank % range == step;
    bool recv = (rank % range == 0) && (rank + step < size);
    if (send) {
      dcuda_put_notify(gst, win, rank - step, offset, sizeof(double),
                       &data->data[local_rank * blockDim.x], round % 256);
    }
    if (recv) {
      dcuda_wait_notifications(gst, round % 256, 1);
      // Listing 3.2, line 44: all 128 threads added to the same element.
      if (threadIdx.x == 0) data->data[local_rank * blockDim.x] += data->buffer[rank + step];
      __syncthreads();  // as above: all threads put it in a later round
    }
  }

  dcuda_stop_cpu_timer(gst);
  if (rank == 0 && threadIdx.x == 0) {  // Listing 3.2, line 49: all threads stored the result
    data->result = data->data[0];
    log << "result = " << data->result << log.flush;
  }

  // cleanup
  dcuda_win_free(gst, win);
  dcuda_gpu_finish(gst);
}

int main(int argc, char** argv) {
  // dcuda initialization
  dcuda_host_context_handle dcuda_host;
  dcuda_host_init(argc, argv, &dcuda_host, kernel, THREADS_PER_BLOCK);
  user_data userdata;

  // rank information
  dcuda_rank_info rank_info;
  dcuda_host_get_rank_info(dcuda_host, &rank_info);
  int local_comm_size = rank_info.rank_responsible;
  int world_comm_size = rank_info.rank_count;
  userdata.is_leader = (rank_info.node_index == 0 && rank_info.device_index == 0);

  // data allocation
  int size = local_comm_size * THREADS_PER_BLOCK;
  cudaMalloc(&userdata.data, 2 * size * sizeof(double));
  userdata.buffer = &userdata.data[size];

  // data initialization
  double expected = 0;
  double* init_data = (double*)malloc(size * sizeof(double));
  for (int i = 0; i < size; i++) {
    init_data[i] = std::rand();
    expected += init_data[i];
  }

  // copy data to device
  cudaMemcpy(userdata.data, init_data, size * sizeof(double), cudaMemcpyHostToDevice);

  // run dcuda kernel
  dcuda_host_run(dcuda_host, &userdata, sizeof(userdata));

  // report result
  bool right = true;
  if (userdata.is_leader) {
    double time = dcuda_host_get_timings(dcuda_host)[0];
    std::cout << "Ranks: " << world_comm_size << std::endl;
    std::cout << "Sum = " << userdata.result << std::endl;
    std::cout << "Computation Time: " << time << " ms" << std::endl;
    // Not in the listing. Every process begins with the same numbers.
    expected *= world_comm_size / local_comm_size;
    right = std::abs(userdata.result - expected) <= 1e-9 * expected;
    if (!right) std::cerr << "the host's sum is " << expected << std::endl;
  }

  // cleanup
  free(init_data);
  cudaFree(userdata.data);
  dcuda_host_finish(dcuda_host);
  return right ? 0 : 1;
}
