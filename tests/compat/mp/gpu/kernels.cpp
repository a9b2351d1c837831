// Compiled by nvcc: kernels that begin LibMP's requests and wait for them.
#include "../peers.hpp"

#include <meshpost/compat/mp/device.cuh>

#include "support/job.hpp"

namespace meshpost {
namespace {

using test::Peers;
using test::require;
using test::Role;

constexpr int steps = 50, size = 20'000;

struct Step {
  ::mp::mlx5::send_desc_t send;
  ::mp::mlx5::wait_desc_t sent, received;
};

// All threads pack; the message must hold what each of them has stored.
__global__ void exchange(Step const* all, int own, int previous, int* out, int const* in,
                         int* wrong) {
  for (int step = 0; step < steps; ++step) {
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
      out[i] = 1'000'000 * own + 1000 * step + i % 1000;
    ::mp::device::mlx5::send_by_block(all[step].send);
    int status = ::mp::device::mlx5::wait_by_block(all[step].received);
    ::mp::device::mlx5::signal(all[step].received);
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
      if (status != 0 || in[step * size + i] != 1'000'000 * previous + 1000 * step + i % 1000)
        atomicAdd(wrong, 1);
    status = ::mp::device::mlx5::wait_by_block(all[step].sent);
    if (status != 0) atomicAdd(wrong, 1);
  }
}

// A kernel waits for a message that nobody sends.
__global__ void wait_for_ever(::mp::mlx5::wait_desc_t descriptor, int* result) {
  *result = ::mp::device::mlx5::wait(descriptor);
}

template <class T>
T* pinned(std::size_t count) {
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped) == cudaSuccess, "memory");
  return static_cast<T*>(memory);
}

Role const kernels("mp_kernels", [] {
  Peers const peers;
  void *out = nullptr, *in = nullptr;
  require(cudaMalloc(&out, 4 * size) == cudaSuccess &&
              cudaMalloc(&in, static_cast<std::size_t>(steps) * 4 * size) == cudaSuccess,
          "memory");
  mp_reg_t out_reg, in_reg;
  MESHPOST_MP(mp_register(out, 4 * size, &out_reg));
  MESHPOST_MP(mp_register(in, static_cast<std::size_t>(steps) * 4 * size, &in_reg));
  auto* const all = pinned<Step>(steps);
  auto* const wrong = pinned<int>(1);
  *wrong = 0;
  std::vector<mp_request_t> sends(steps), receives(steps);
  for (int step = 0; step < steps; ++step) {
    auto& one = *new (all + step) Step;
    auto const at = static_cast<std::size_t>(step);
    MESHPOST_MP(mp_irecv(static_cast<int*>(in) + at * size, 4 * size, peers.previous(), &in_reg,
                         &receives[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.received, &receives[at]));
    MESHPOST_MP(mp_send_prepare(out, 4 * size, peers.next(), &out_reg, &sends[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.send, &sends[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.sent, &sends[at]));
  }
  exchange<<<1, 256>>>(all, peers.own, peers.previous(), static_cast<int*>(out),
                       static_cast<int const*>(in), wrong);
  MESHPOST_MP(mp_wait_all(steps, receives.data()));
  MESHPOST_MP(mp_wait_all(steps, sends.data()));
  require(cudaDeviceSynchronize() == cudaSuccess, "the kernel ends");
  require(*wrong == 0, "all numbers are right");
});

TEST(MpKernels, begin_sends_of_all_that_their_block_has_stored) {
  for (u32 const processes : {1u, 2u}) {
    test::Job job("mp_kernels", processes);
    test::expect_well(job.wait());
  }
}

Role const late("mp_late_kernel", [] {
  Peers const peers;
  test::Registered<int> in(1);
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(in.values.data(), 4, 0, &in.reg, &receive));
  ::mp::mlx5::wait_desc_t descriptor;
  MESHPOST_MP(::mp::mlx5::get_descriptors(&descriptor, &receive));
  auto* const result = pinned<int>(1);
  *result = 0;
  wait_for_ever<<<1, 1>>>(descriptor, result);
  require(cudaDeviceSynchronize() == cudaSuccess, "the kernel ends");
  require(*result == gdsync::ERROR_TIMEOUT, "its wait says so");
});

TEST(MpKernels, get_an_error_of_a_wait_after_the_deadline) {
  test::Job job("mp_late_kernel", 1, {{"MESHPOST_DEADLINE", "0.5"}});
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
