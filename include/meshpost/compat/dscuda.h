#pragma once
/* DS-CUDA's batched copies, within one process, on top of meshpost; for C and C++. They find out
 * the device of each pointer, or that it points to the host's memory.
 *
 * Unlike the originals, all return 0, or not 0 for a failure. Then dscudaLastError() has the text,
 * and the handler is called. A batch whose copies touch the same bytes is refused, not run. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Copies counts[i] bytes from sbufs[i] to dbufs[i]. Independent copies run at once. Returns when
 * all have arrived. `dbufs` are the destinations, as in the package (the thesis's text has it
 * reversed). */
int dscudaMemcopies(void** dbufs, void** sbufs, int* counts, int ncopies);
/** The same for more than 2 GiB. */
int dscudaMemcopies64(void** dbufs, void** sbufs, const size_t* counts, size_t ncopies);

/** Copies `count` bytes from `sbuf` to all of `dbufs`, in a tree: each buffer that has them is the
 * source of further copies. */
int dscudaBroadcast(void** dbufs, void* sbuf, int count, int ncopies);
int dscudaBroadcast64(void** dbufs, void* sbuf, size_t count, size_t ncopies);

/** Called after a failure, on the thread that had it, with `argument`; null: nothing is called.
 * An exception of it is ignored, with a warning: callers may be written in C. */
void dscudaSetErrorHandler(void (*handler)(void*), void* argument);
/** Text of this thread's last failure, "" if there was none. Valid until its next failure. */
const char* dscudaLastError(void);

#ifdef __cplusplus
}
#endif
