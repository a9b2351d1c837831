#include "compat/mp/guarded.hpp"
#include "compat/mp/session.hpp"
#include "meshpost/compat/mp.h"
#include "meshpost/rma/mpi.hpp"

int meshpost_mp_init(MPI_Comm comm, int const* peers, int count, int /*flags*/, int gpu) {
  using namespace meshpost::compat::mp;
  return guarded([&] {
    if (count > 0) check_given("mp_init", peers, "the list of peers");
    begin_session(meshpost::options_over(comm),
                  std::vector<int>(peers, peers + (count > 0 ? count : 0)), gpu);
  });
}
