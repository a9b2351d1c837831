#include "net/mpi/check.hpp"

#include "meshpost/base/error.hpp"

namespace meshpost::net::mpi {

void check_may_call(char const* operation) {
  int initialised = 0, finalised = 0, level = 0, main = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised)
    throw Error(Kind::misuse, operation, "MPI is not initialised",
                "call MPI_Init or MPI_Init_thread first");
  if (finalised)
    throw Error(Kind::misuse, operation, "MPI_Finalize has been called",
                "make this call before it");
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&main);
  if (!main && level < MPI_THREAD_SERIALIZED)
    throw Error(Kind::misuse, operation,
                "MPI was initialised for calls of its main thread only, and this is another",
                "call it from that thread, or MPI_Init_thread with MPI_THREAD_MULTIPLE");
}

void check_communicator(char const* operation, MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL)
    throw Error(Kind::bad_argument, operation, "the communicator is MPI_COMM_NULL",
                "give one that this process is in; processes outside make no call");
  int inter = 0;
  MPI_Comm_test_inter(communicator, &inter);
  if (inter)
    throw Error(Kind::bad_argument, operation, "it is an intercommunicator",
                "give one of a single group (MPI_Intercomm_merge makes one of both)");
}

}  // namespace meshpost::net::mpi
