// Engines of one process, over a communicator of it alone.
#include "net/engines/group.hpp"
#include "net/mpi/make.hpp"
#include "net/shuffled.hpp"

namespace meshpost::net::test {
namespace {

std::unique_ptr<Engine> over_self() {
  static auto const name = register_mpi(MPI_COMM_SELF);
  return make_engine(name, "");
}

}  // namespace

std::vector<Variant> variants() {
  // Threads of one process take turns at MPI's locks. A test of 1 s on an idle host takes 40 s on a
  // busy one.
  return {{"mpi", over_self, 5'000, 300},
          {"mpi_shuffled", [] { return std::make_unique<Shuffled>(over_self(), 7); }, 5'000, 300}};
}

}  // namespace meshpost::net::test
