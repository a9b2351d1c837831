#pragma once
/* COACCEL's devices of the kind MPI: memory of another process of an MPI job. coaccel.h says how
 * they are used. Programs that include this link meshpost::mpi. */
#include <mpi.h>

#include "meshpost/compat/coaccel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** From now on coaccel_device_open() knows "mpi:RANK" and "mpi:RANK:ID", with ranks of `comm`. Call
 * it once, after MPI_Init_thread with MPI_THREAD_MULTIPLE. Collective over `comm`, of which it
 * takes a duplicate. MPI_Finalize ends it: close the devices before.
 *
 * Returns 0, or not 0 for a failure: MPI is not initialised, or is finalised, or its thread level
 * is too low; `comm` is MPI_COMM_NULL or an intercommunicator; it was called before; or another
 * process has failed here. coaccel_last_error() says which. */
int coaccel_mpi_init(MPI_Comm comm);

#ifdef __cplusplus
}
#endif
