#pragma once
/* COACCEL, the interface of its figures 2 to 4, on top of meshpost; for C and C++.
 *
 * The figures give only the functions. This header defines the rest: how devices and groups are
 * made, and how a pipeline's buffers are addressed. Sizes and offsets are in bytes. The differences
 * from the figures are additions.
 *
 * Errors: a function that returns a pointer returns null. A function that returns nothing warns on
 * the event sink. coaccel_last_error() has the text of the calling thread's last failure. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coaccel_device_s* coaccel_device;
typedef struct coaccel_device_group_s* coaccel_device_group;
typedef struct coaccel_multi_s* coaccel_multi;
typedef struct coaccel_pipeline_s* coaccel_pipeline;
typedef void* coaccel_address;

/* --- additions to the figures ------------------------------------------------------------------
 */

/** Text of this thread's last failure; null if none came since the last call. Valid until the
 * thread's next failure. */
const char* coaccel_last_error(void);

/** "pageable" or "pinned" (memory of the host), "cuda:0", "cpu:1" (a device), "mpi:1" or "mpi:1:7"
 * (memory of process 1 of an MPI job; see below). */
coaccel_device coaccel_device_open(const char* name);
/** Call it after everything that uses the device. Frees memory that is still allocated there. */
void coaccel_device_close(coaccel_device device);
void coaccel_device_free(coaccel_device device, coaccel_address address);

/** A group of these devices, in this order. The one at `compute` computes in pipelines; -1: none.
 */
coaccel_device_group coaccel_group_init(int count, const coaccel_device* devices, int compute);
void coaccel_group_done(coaccel_device_group group);

/* --- MPI devices -------------------------------------------------------------------------------
 *
 * "mpi:RANK:ID" stands for memory of process RANK. coaccel_mpi_init() of coaccel_mpi.h must have
 * been called. Process RANK opens a device for this process with the same identifier ID, from 0 to
 * 2147483647; "mpi:RANK" is "mpi:RANK:0". A process can have each name open once.
 *
 * coaccel_device_malloc() there returns an address that stands for memory of the other process:
 * each process says only where its own end of a copy is. Reading or writing there ends the program
 * (SIGSEGV).
 *
 * The pieces to an MPI device in one call of coaccel_memcpy_start() are one message, with their
 * bytes in the order of the list. The pieces from it are a message in the other direction. The n-th
 * message of a direction meets the n-th that the other process expects, whatever it is cut into
 * there; the sums of their sizes must be equal. coaccel_memcpy_finish() returns when the bytes have
 * arrived, in both processes. Sizes are not limited. Memory of GPUs passes through the host.
 *
 * In a pipeline's group an MPI device may be the first or the last, and does not compute. Levels
 * beyond it belong to the group of the other process, which makes a pipeline of the same size and
 * chunks. Process 0 may have [pinned, mpi:1], and process 1 [mpi:0, pinned, cuda:0]. Use another
 * identifier for each pipeline that runs at the same time.
 *
 * A copy fails in both processes if sizes differ, if one process has an error in its pipeline,
 * closes its device or calls MPI_Finalize, and if nothing moves for MESHPOST_DEADLINE seconds. Then
 * close the device and open it again, in both. If a process is killed, mpirun ends the job. */

/* --- figure 2: devices -------------------------------------------------------------------------
 */

enum { COACCEL_ANY_DIRECTION = 0 };

/** Begins to copy `count` pieces from src[i] to dst[i]. `dir` is not needed, because the addresses
 * tell the places. Pieces may not overlap. The lists may be freed when it returns. */
void* coaccel_memcpy_start(coaccel_device device, int count, coaccel_address* dst,
                           coaccel_address* src, size_t* size, int dir);
/** Returns when all pieces have arrived. `desc` is then freed. */
void coaccel_memcpy_finish(coaccel_device device, void* desc);

/** Locks the device for this thread until it has unlocked as often as it locked. Meanwhile
 * coaccel_device_malloc, _free, _lock and coaccel_memcpy_start of other threads on it wait. This
 * call waits for such calls in progress. Work of pipelines and of a multi's threads is not blocked.
 * A thread that has locked the device must not wait for one that calls these functions. */
void coaccel_device_lock(coaccel_device device);
void coaccel_device_unlock(coaccel_device device);

coaccel_address coaccel_device_malloc(coaccel_device desc, size_t size);

/* --- figure 3: multi ---------------------------------------------------------------------------
 */

/** Returns 0, or not 0 for a failure, which ends the group's steps. */
typedef int (*coaccel_multi_func_t)(coaccel_device_group group, coaccel_device device, int iddevice,
                                    int ithread, void* data);

/** Starts `nthreads` threads; 0: one for each device. Thread i is for device i modulo the group's
 * size. */
coaccel_multi coaccel_multi_init(coaccel_device_group group, int nthreads,
                                 coaccel_multi_func_t thread_init,
                                 coaccel_multi_func_t thread_deinit, void* data);
/** Calls `process` on all threads and returns when all have finished. It is an error to call it
 * inside functions of the same threads, or of threads that they wait for. */
void coaccel_multi_step_all(coaccel_multi desc, coaccel_multi_func_t process, void* data);
/** Calls thread_deinit with this `data` on all threads, ends them, and frees `desc`. Where
 * coaccel_multi_step_all would be an error, this is one too, and `desc` stays as it was. */
void coaccel_multi_finalize(coaccel_multi desc, void* data);

/* --- figure 4: pipeline ------------------------------------------------------------------------
 */

/** Pieces to copy. They are read when the function returns them, so the lists may be reused. If
 * count is COACCEL_WHOLE: all of the chunk, from its buffer at one level to that at the next. */
typedef struct coaccel_memreq_s {
  int count;
  coaccel_address* dst;
  coaccel_address* src;
  size_t* size;
} coaccel_memreq;
enum { COACCEL_WHOLE = -1 };

/** The pieces of a chunk on its way to level `istage`. `ihost` is its offset in the whole,
 * `idevice` its offset in the buffers of each level, `szchunk` its size; all in bytes. */
typedef coaccel_memreq (*coaccel_pipeline_transfer_t)(int istage, size_t ihost, size_t idevice,
                                                      size_t szchunk, void* data);
/** Begins, or ends, the computation on a chunk. Returns 0, or not 0 for a failure. */
typedef int (*coaccel_pipeline_process_t)(int mode, size_t ihost, size_t idevice, void* data);
enum { COACCEL_START = 0, COACCEL_SYNC = 1 }; /* mode */
enum { COACCEL_IN = 0, COACCEL_OUT = 1, COACCEL_COMPUTED = 2 };

/** A pipeline over the group's devices, from the first to the last and back. In reverse it goes
 * from the last to the first and back. It moves `size` bytes, `szchunk` at a time. */
coaccel_pipeline coaccel_pipeline_init(coaccel_device_group devices, size_t size, size_t szchunk,
                                       int reverse, coaccel_pipeline_transfer_t load_func,
                                       coaccel_pipeline_transfer_t save_func,
                                       coaccel_pipeline_process_t process_start_func,
                                       coaccel_pipeline_process_t process_sync_func, void* ptr);
/** The buffers of a level, for chunks on their way from home or (COACCEL_OUT) on their way back.
 * Null at home. Null for OUT at a level where chunks turn without being computed on. COMPUTED:
 * where the computation stores its results; that is OUT, unless chunks go on to another level. For
 * an MPI device: the address that stands for a chunk there, without `idevice`. */
coaccel_address coaccel_pipeline_buffer(coaccel_pipeline desc, int level, int direction);
/** Passes all chunks through. */
void coaccel_pipeline_process(coaccel_pipeline desc);
void coaccel_pipeline_done(coaccel_pipeline desc);

#ifdef __cplusplus
}
#endif
