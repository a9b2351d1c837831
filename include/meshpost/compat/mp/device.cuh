#pragma once
// LibMP's interface for kernels (the KI model): descriptors of requests, which the host gets and a
// kernel uses. docs/libmp.md says where it differs from the original.
#include "meshpost/compat/mp.h"
#include "meshpost/rma/rank.hpp"

namespace gdsync {

enum wait_cond_t { GDS_WAIT_COND_GEQ, GDS_WAIT_COND_EQ, GDS_WAIT_COND_AND, GDS_WAIT_COND_NOR };
enum { ERROR_TIMEOUT = 11, ERROR_INVALID = 22 };  // what waits return; 0: the condition holds

/// A word of the host's memory, and a value to store or to compare it with.
struct isem32 {
  uint32_t* ptr = nullptr;
  uint32_t value = 0;
  uint64_t timeout_ns = 0;  ///< of a wait; 0: none
};
using isem32_t = isem32;

}  // namespace gdsync

namespace mp::mlx5 {

using isem32_t = gdsync::isem32_t;
struct send_desc_t {
  isem32_t begin;
};
struct wait_desc_t {
  isem32_t done;
  uint32_t const* failed = nullptr;  ///< not 0: LibMP's operations have failed
};

// Called by the host. They return MP_SUCCESS, or MP_FAILURE as all functions of mp.h.

/// For a kernel that waits until *ptr >= value. The kernel must be able to read the word: memory of
/// cudaHostAlloc, or memory that cudaHostRegister has registered.
int get_descriptors(isem32_t* descriptor, uint32_t* ptr, uint32_t value);
/// Posts a request that was prepared: a kernel begins it, by send().
int get_descriptors(send_desc_t* descriptor, mp_request_t* req);
/// For a kernel that waits until a posted request is complete.
int get_descriptors(wait_desc_t* descriptor, mp_request_t* req);

}  // namespace mp::mlx5

// In a kernel of World::run or launch, on any device, with Launch::with_host. All threads of a rank
// call them together. A wait for LibMP that doesn't end, or that ends because LibMP's operations
// have failed, ends the run, with an error that names the rank.
namespace mp::device::mlx5 {

/// Begins the request, once. All that the rank's threads have stored before is sent.
MESHPOST_FN inline void send(meshpost::Rank& self, mp::mlx5::send_desc_t const& descriptor) {
  auto const& begin = descriptor.begin;
  if (!begin.ptr) self.fail("LibMP's send: get_descriptors has not filled this descriptor");
  bool const used =
      self.thread() == 0 &&
      static_cast<int32_t>(meshpost::memory::load_acquire(begin.ptr) - begin.value) >= 0;
  // Also orders all threads' stores before thread 0's, which releases them.
  if (self.any(used)) self.fail("LibMP's send: this descriptor's request has begun before");
  if (self.thread() == 0) meshpost::memory::store(begin.ptr, begin.value, meshpost::Order::system);
}
/// Returns when the request is complete. All threads then see what has come.
MESHPOST_FN inline void wait(meshpost::Rank& self, mp::mlx5::wait_desc_t const& descriptor) {
  auto const& done = descriptor.done;
  if (!done.ptr) self.fail("LibMP's wait: get_descriptors has not filled this descriptor");
  self.wait_until(meshpost::LocalSpan<uint32_t>(done.ptr, 1), meshpost::Compare::greater_equal,
                  done.value);
  // After a failure all requests are complete, but not done. One thread looks for all.
  if (self.any(self.thread() == 0 && meshpost::memory::load_acquire(descriptor.failed) != 0))
    self.fail("LibMP's operations have failed; the host's next call of it says why");
}
/// Nothing: here a request is complete for the host, too, when it is for a kernel.
MESHPOST_FN inline void signal(meshpost::Rank& /*self*/,
                               mp::mlx5::wait_desc_t const& /*descriptor*/) {}

}  // namespace mp::device::mlx5

#if defined(__CUDACC__)

namespace gdsync::device {

namespace detail {
/// Polls until `holds(word)`, or the time is over.
template <class Holds>
__device__ inline int poll(isem32_t const& sem, Holds const& holds) {
  auto const since = meshpost::memory::clock_ns();
  for (;;) {
    if (holds(meshpost::memory::load_acquire(sem.ptr))) return 0;
    if (sem.timeout_ns != 0 && meshpost::memory::clock_ns() - since > sem.timeout_ns)
      return ERROR_TIMEOUT;
    __nanosleep(100);
  }
}
}  // namespace detail

// Each is called by one thread. It sees what was stored before the word was; after a
// __syncthreads(), so does its block.
__device__ inline int wait_geq(isem32_t const& sem) {
  return detail::poll(sem,
                      [&](uint32_t word) { return static_cast<int32_t>(word - sem.value) >= 0; });
}
__device__ inline int wait_eq(isem32_t const& sem) {
  return detail::poll(sem, [&](uint32_t word) { return word == sem.value; });
}
__device__ inline int wait_and(isem32_t const& sem) {
  return detail::poll(sem, [&](uint32_t word) { return (word & sem.value) != 0; });
}
__device__ inline int wait_nor(isem32_t const& sem) {
  return detail::poll(sem, [&](uint32_t word) { return ~(word | sem.value) != 0; });
}
__device__ inline int wait(isem32_t const& sem, wait_cond_t condition) {
  switch (condition) {
    case GDS_WAIT_COND_GEQ: return wait_geq(sem);
    case GDS_WAIT_COND_EQ: return wait_eq(sem);
    case GDS_WAIT_COND_AND: return wait_and(sem);
    case GDS_WAIT_COND_NOR: return wait_nor(sem);
  }
  return ERROR_INVALID;
}
/// Stores the value, behind all that this thread has stored, or has seen others store.
__device__ inline void release(isem32_t const& sem) {
  meshpost::memory::store(sem.ptr, sem.value, meshpost::Order::system);
}

}  // namespace gdsync::device

namespace mp::device::mlx5 {

/// Begins the request. Called by one thread. Stores of other threads of its block must be
/// ordered before by __syncthreads(); send_by_block() does that.
__device__ inline void send(mp::mlx5::send_desc_t const& descriptor) {
  gdsync::device::release(descriptor.begin);
}
/// The same, called by all threads of a block: all that they have stored before is sent.
__device__ inline void send_by_block(mp::mlx5::send_desc_t const& descriptor) {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) send(descriptor);
}
/// Returns 0 when the request is complete. Called by one thread. Otherwise gdsync::ERROR_TIMEOUT
/// after MESHPOST_DEADLINE, or gdsync::ERROR_INVALID if LibMP's operations have failed.
__device__ inline int wait(mp::mlx5::wait_desc_t const& descriptor) {
  int const result = gdsync::device::wait_geq(descriptor.done);
  if (result != 0) return result;
  return meshpost::memory::load_acquire(descriptor.failed) != 0 ? gdsync::ERROR_INVALID : 0;
}
/// The same, called by all threads of a block, which then see what has come.
__device__ inline int wait_by_block(mp::mlx5::wait_desc_t const& descriptor) {
  int result = 0;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) result = wait(descriptor);
  return __syncthreads_or(result);
}
/// Nothing: here a request is complete for the host, too, when it is for a kernel.
__device__ inline void signal(mp::mlx5::wait_desc_t const& /*descriptor*/) {}

}  // namespace mp::device::mlx5
#endif
