#pragma once
#include <mpi.h>

namespace meshpost::test {

inline int rank_in(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

/// A communicator that frees itself, in all its processes.
class Group {
 public:
  explicit Group(MPI_Comm communicator) : communicator_(communicator) {}
  ~Group() { MPI_Comm_free(&communicator_); }
  Group(Group const&) = delete;
  Group& operator=(Group const&) = delete;
  MPI_Comm get() const { return communicator_; }

 private:
  MPI_Comm communicator_;
};

inline Group duplicate(MPI_Comm all) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(all, &made);
  return Group(made);
}
inline Group split(MPI_Comm all, int color, int key) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(all, color, key, &made);
  return Group(made);
}
/// Between rank 0 and all others of MPI_COMM_WORLD; `local` holds this process's side.
inline Group intercommunicator(MPI_Comm local) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank_in(MPI_COMM_WORLD) == 0 ? 1 : 0, 1, &made);
  return Group(made);
}

}  // namespace meshpost::test
