// A LibMP program under MPI: the communicator's processes are its peers.
#include <meshpost/compat/mp.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

void check(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// In reversed order, to see that the communicator's numbers count.
void exchange(MPI_Comm comm) {
  int own = 0, count = 0;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &count);
  std::vector<int> peers(static_cast<std::size_t>(count));
  std::iota(peers.begin(), peers.end(), 0);
  check(mp_init(comm, peers.data(), count, MP_INIT_DEFAULT, 0) == MP_SUCCESS, "mp_init");
  int const next = (own + 1) % count, previous = (own + count - 1) % count;
  std::vector<int> out(1000, own), in(1000, -1), box(10, -1);
  mp_reg_t out_reg, in_reg;
  mp_register(out.data(), out.size() * sizeof(int), &out_reg);
  mp_register(in.data(), in.size() * sizeof(int), &in_reg);
  mp_window_t window;
  check(mp_window_create(box.data(), box.size() * sizeof(int), &window) == MP_SUCCESS, "window");
  mp_request_t receive, send, put;
  check(mp_irecv(in.data(), 4000, previous, &in_reg, &receive) == MP_SUCCESS, "receive");
  check(mp_iput(out.data(), 8, &out_reg, next, 4, &window, &put, 0) == MP_SUCCESS, "put");
  check(mp_isend(out.data(), 4000, next, &out_reg, &send) == MP_SUCCESS, "send");
  check(mp_wait(&receive) == MP_SUCCESS && mp_wait(&send) == MP_SUCCESS, "wait");
  check(in == std::vector<int>(1000, previous), "the message");
  check(box[0] == -1 && box[1] == previous && box[2] == previous && box[3] == -1, "the put");
  MPI_Barrier(comm);
  check(mp_window_destroy(&window) == MP_SUCCESS, "destroy");
  mp_finalize();
}

}  // namespace

int main(int count, char** values) {
  MPI_Init(&count, &values);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  exchange(MPI_COMM_WORLD);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  exchange(reversed);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
}
