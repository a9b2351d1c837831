#pragma once
/* LibMP's interface (GPUDirect Async), on top of meshpost; for C and C++. CMake target
 * meshpost::mp, whose include path has this header as <mp.h> too. docs/libmp.md says what a program
 * may expect, and where it differs.
 *
 * A peer is the number of a process in the communicator. There are no tags: messages from one
 * process to another are received in the order in which they were posted. All calls return
 * MP_SUCCESS, or another value for a failure, whose text goes to stderr and to mp_last_error().
 * Calls may come from any thread.
 *
 * Programs without MPI define MESHPOST_MP_WITHOUT_MPI, and call mp_init_job(). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h> /* as the original's: its programs use getenv() without */
#include <sys/uio.h>

#if defined(__CUDACC__) || __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else
#include "meshpost/compat/on_cpu/cuda_runtime.h"
#endif
#if !defined(MESHPOST_MP_WITHOUT_MPI)
#include <mpi.h>
#endif

#define MP_SUCCESS 0
#define MP_FAILURE 1

#define MP_API_MAJOR_VERSION 2
#define MP_API_MINOR_VERSION 0
#define MP_API_VERSION ((MP_API_MAJOR_VERSION << 16) | MP_API_MINOR_VERSION)
/** True if a program for version `v` may use this one. */
#define MP_API_VERSION_COMPATIBLE(v) \
  (((uint32_t)(v) >> 16) == MP_API_MAJOR_VERSION && (int)((v) & 0xffff) >= MP_API_MINOR_VERSION)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_reg* mp_reg_t;
typedef struct mp_request* mp_request_t;
typedef struct mp_window* mp_window_t;
typedef struct mp_desc_queue* mp_desc_queue_t;

typedef enum mp_param { MP_PARAM_VERSION, MP_NUM_PARAMS } mp_param_t;
int mp_query_param(mp_param_t param, int* value);

/** Where InfiniBand's queues lie. They have no effect here. */
enum mp_init_flags {
  MP_INIT_DEFAULT = 0,
  MP_INIT_WQ_ON_GPU,
  MP_INIT_RX_CQ_ON_GPU,
  MP_INIT_TX_CQ_ON_GPU,
  MP_INIT_DBREC_ON_GPU
};

/** Text of this thread's last failure, "" if there was none. Valid until its next failure. Not in
 * the original. */
const char* mp_last_error(void);

/** As mp_init, for the processes that a launcher has started (meshpost-run, mpirun, srun), without
 * MPI; alone if none has. `process` and `processes` get this process's number and their number;
 * each may be null. Not in the original. */
int mp_init_job(const int* peers, int count, int flags, int gpu, int* process, int* processes);
/** Waits until all processes have called it. */
void mp_finalize(void);

/** Memory of a message or put lies within memory that was registered: the host's, or a GPU's. */
int mp_register(void* addr, size_t length, mp_reg_t* reg);
int mp_deregister(mp_reg_t* reg);

/* Operations of the host. `size`: bytes. */

/** The next message from `peer` goes to `buf`. It may be shorter than `size`. */
int mp_irecv(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req);
/** It is complete when the peer has received it. */
int mp_isend(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req);
/** From, and to, several blocks of one registration, one behind the other. */
int mp_irecvv(struct iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req);
int mp_isendv(struct iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req);

/** Returns when the operation is complete. Another wait for it returns at once. */
int mp_wait(mp_request_t* req);
int mp_wait_all(uint32_t count, mp_request_t* reqs);
/** Carries operations on, without a wait. A thread of the library does that, too. */
int mp_progress_all(uint32_t count, mp_request_t* reqs);

/* Operations in the order of a stream. They read `buf` when the stream gets there. The order of
 * messages to one peer is that of these calls, also if they name several streams. */

/** Later work of the stream begins when the message was received. */
int mp_send_on_stream(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req,
                      cudaStream_t stream);
int mp_isend_on_stream(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req,
                       cudaStream_t stream);
int mp_isendv_on_stream(struct iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req,
                        cudaStream_t stream);
/** Later work of the stream begins when the operation is complete. */
int mp_wait_on_stream(mp_request_t* req, cudaStream_t stream);
int mp_wait_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream);

/* The same in two steps. The order of messages to one peer is that of the posts. */

int mp_send_prepare(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req);
int mp_sendv_prepare(struct iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req);
int mp_send_post_on_stream(mp_request_t* req, cudaStream_t stream);
int mp_isend_post_on_stream(mp_request_t* req, cudaStream_t stream);
int mp_send_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream);
int mp_isend_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream);

/* Windows: memory that peers write and read. */

/** Collective. The processes' sizes may differ. */
int mp_window_create(void* addr, size_t size, mp_window_t* window);
int mp_window_destroy(mp_window_t* window);

enum mp_put_flags {
  MP_PUT_INLINE = 1 << 0, /**< `src` is read before the call returns */
  MP_PUT_NOWAIT = 1 << 1  /**< nobody waits for the request */
};

/** Writes `size` bytes at `displ` of the peer's window. It is complete when they are there. A
 * message that is posted later arrives later. */
int mp_iput(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ, mp_window_t* window,
            mp_request_t* req, int flags);
int mp_iget(void* dst, int size, mp_reg_t* dst_reg, int peer, size_t displ, mp_window_t* window,
            mp_request_t* req);
int mp_iput_on_stream(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ,
                      mp_window_t* window, mp_request_t* req, int flags, cudaStream_t stream);
int mp_put_prepare(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ,
                   mp_window_t* window, mp_request_t* req, int flags);
int mp_iput_post_on_stream(mp_request_t* req, cudaStream_t stream);
int mp_iput_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream);

/* Words of the host's memory that others change. */

enum mp_wait_flags {
  MP_WAIT_GEQ = 0, /**< *ptr - value, read as signed, is not negative: a counter may wrap */
  MP_WAIT_EQ,      /**< *ptr == value */
  MP_WAIT_AND      /**< (*ptr & value) != 0 */
};

/** Returns when the condition holds. */
int mp_wait32(uint32_t* ptr, uint32_t value, int flags);
/** Later work of the stream begins when the condition has held, after the stream got there. */
int mp_wait32_on_stream(uint32_t* ptr, uint32_t value, int flags, cudaStream_t stream);
static inline int mp_wait_dword_geq_on_stream(uint32_t* ptr, uint32_t value, cudaStream_t stream) {
  return mp_wait32_on_stream(ptr, value, MP_WAIT_GEQ, stream);
}
static inline int mp_wait_dword_eq_on_stream(uint32_t* ptr, uint32_t value, cudaStream_t stream) {
  return mp_wait32_on_stream(ptr, value, MP_WAIT_EQ, stream);
}

/* A list of operations that one call puts on a stream, which empties the list. */

int mp_desc_queue_alloc(mp_desc_queue_t* queue);
int mp_desc_queue_free(mp_desc_queue_t* queue);
int mp_desc_queue_add_send(mp_desc_queue_t* queue, mp_request_t* req);
int mp_desc_queue_add_wait_send(mp_desc_queue_t* queue, mp_request_t* req);
int mp_desc_queue_add_wait_recv(mp_desc_queue_t* queue, mp_request_t* req);
int mp_desc_queue_add_wait_value32(mp_desc_queue_t* queue, uint32_t* ptr, uint32_t value,
                                   int flags);
/** Stores a word of the host's memory. */
int mp_desc_queue_add_write_value32(mp_desc_queue_t* queue, uint32_t* ptr, uint32_t value);
/** `flags`: 0 */
int mp_desc_queue_post_on_stream(cudaStream_t stream, mp_desc_queue_t* queue, int flags);

#if !defined(MESHPOST_MP_WITHOUT_MPI)
/** mp_init on the calling thread's current GPU, `gpu`; -1: there is none. */
int meshpost_mp_init(MPI_Comm comm, const int* peers, int count, int flags, int gpu);
/** Makes this process one of those of `comm`. `peers`: the processes with which it will
 * communicate, by their numbers there; it may be one of them itself. Memory of GPUs and streams are
 * those of the calling thread's current GPU, whatever `gpu_id` says (InfiniBand's queues are there
 * in the original). Collective over `comm`, after MPI_Init. */
static inline int mp_init(MPI_Comm comm, int* peers, int count, int flags, int gpu_id) {
  int current = gpu_id;
  if (cudaGetDevice(&current) != cudaSuccess) current = -1;
  return meshpost_mp_init(comm, peers, count, flags, current);
}
#endif

#ifdef __cplusplus
}
#endif
