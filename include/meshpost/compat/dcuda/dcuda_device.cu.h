#pragma once
// The device's half of dCUDA (listings 3.4 and 3.5), for kernels `__global__ void
// kernel(dcuda_context_handle)`.
//
// Unless a function says otherwise, all threads of the rank call it with equal arguments, like
// __syncthreads(). Their earlier stores are then complete. A bad argument ends the run.
// dcuda_host_run then throws an error that names the rank, the operation and what would be right.
#include "meshpost/compat/dcuda/detail/state.hpp"

typedef struct dcuda_context* dcuda_context_handle;

/// State of a rank, shared by its threads: declare it `__shared__`.
struct dcuda_state;

using dcuda_comm = int;
#define DCUDA_COMM_WORLD 0   ///< all ranks
#define DCUDA_COMM_DEVICE 1  ///< ranks of the same device

/// A window, by a number that is the same in all ranks of its communicator. Compares with
/// DCUDA_WIN_NONE.
struct dcuda_win;
#define DCUDA_WIN_NONE (dcuda_win{0})

// -- beginning and end

/// Before any other call, once. Enters a barrier of all ranks.
__device__ void dcuda_gpu_init(dcuda_context_handle dcuda, dcuda_state& gst);
/// The last call. Enters a barrier of all ranks.
__device__ void dcuda_gpu_finish(dcuda_state& gst);
/// The data given to dcuda_host_run; null if there was none. A thread may call it alone.
__device__ void dcuda_get_data(dcuda_state& gst, void** gpu_data);

// -- who am I: a thread may call these alone

__device__ void dcuda_comm_size(dcuda_state& gst, dcuda_comm comm, int* size);
__device__ void dcuda_comm_rank(dcuda_state& gst, dcuda_comm comm, int* rank);

// -- time: all ranks of the device call them

__device__ void dcuda_start_cpu_timer(dcuda_state& gst);
/// Takes the time since the last start; at most 64 in a run.
__device__ void dcuda_stop_cpu_timer(dcuda_state& gst);

// -- windows

__device__ void dcuda_comm_barrier(dcuda_state& gst, dcuda_comm comm);
/// Exposes `size` bytes at `winbase`, in global memory, to the ranks of `comm`. All of them call
/// it, each with its own memory. 0 bytes are legal, and windows of one device may overlap. If one
/// rank gives impossible arguments, or 64 windows of `comm` exist, every rank gets DCUDA_WIN_NONE.
/// A log line then says why.
__device__ void dcuda_win_create(dcuda_state& gst, dcuda_comm comm, void* winbase, int size,
                                 dcuda_win* win);
/// Ends the window. All ranks of its communicator call it; enters a barrier of them.
__device__ void dcuda_win_free(dcuda_state& gst, dcuda_win win);

// -- moving data. Ranks count in the window's communicator; offsets and sizes are in bytes. The
// source lies inside the caller's own part of the window. Messages from one rank to one other keep
// their order.

/// Copies `size` bytes to `offset` in rank `rank`'s part. A later notification tells that rank of
/// them.
__device__ void dcuda_put(dcuda_state& gst, dcuda_win win, int rank, int offset, int size,
                          void const* buffer);
/// dcuda_put, then dcuda_notify. Copies nothing if source and target are the same memory.
__device__ void dcuda_put_notify(dcuda_state& gst, dcuda_win win, int rank, int offset, int size,
                                 void const* buffer, int tag);
/// Notifies rank `rank` of `comm` with a tag of 0 to 255.
__device__ void dcuda_notify(dcuda_state& gst, int rank, dcuda_comm comm, int tag);
/// Returns when the sources of this rank's puts to `win` may change.
__device__ void dcuda_win_flush(dcuda_state& gst, dcuda_win win);

// -- knowing that it arrived. There is one space of tags: notifications count by tag, from any
// sender.

/// Consumes `count` notifications and returns 1, or returns 0 and consumes none if there are fewer.
__device__ int dcuda_test_notifications(dcuda_state& gst, int tag, int count);
/// Waits for `count` notifications and consumes them.
__device__ void dcuda_wait_notifications(dcuda_state& gst, int tag, int count);

// -- log lines, printed while the kernel runs

/// `log << "x = " << x << log.flush` prints a line for each rank that calls it, from its thread 0.
/// Other threads may call it too, or not.
class dcuda_log;
__device__ dcuda_log dcuda_log_get(dcuda_state& gst);

#include "meshpost/compat/dcuda/detail/operations.hpp"
#include "meshpost/compat/dcuda/detail/windows.hpp"
