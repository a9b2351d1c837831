#pragma once
/* DS-CUDA's batched copies, within one process, on top of meshpost; for C and C++. Where a pointer
 * points, on which device or in the host's memory, is found out.
 *
 * Unlike the originals, all return 0, or not 0 for a failure; dscudaLastError() says what it was,
 * and the handler is called. A batch whose copies touch the same bytes is refused, not run. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Copies counts[i] bytes from sbufs[i] to dbufs[i], independent copies at once, and returns when
 * all have arrived. `dbufs` are the destinations, as in the package (the thesis's text has it
 * reversed). */
int dscudaMemcopies(void** dbufs, void** sbufs, int* counts, int ncopies);
/** The same for more than 2 GiB. */
int dscudaMemcopies64(void** dbufs, void** sbufs, const size_t* counts, size_t ncopies);

/** Copies `count` bytes from `sbuf` to all of `dbufs`, down a tree: who has them passes them on. */
int dscudaBroadcast(void** dbufs, void* sbuf, int count, int ncopies);
int dscudaBroadcast64(void** dbufs, void* sbuf, size_t count, size_t ncopies);

/** Called after a failure, on the thread that had it, with `argument`; null: nothing is called.
 * What it throws is ignored, with a warning: callers may be written in C. */
void dscudaSetErrorHandler(void (*handler)(void*), void* argument);
/** What went wrong last on this thread, "" if nothing did. Valid until its next failure. */
const char* dscudaLastError(void);

#ifdef __cplusplus
}
#endif
