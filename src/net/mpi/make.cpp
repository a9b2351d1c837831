#include "net/mpi/make.hpp"

#include <mutex>
#include <vector>

#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"
#include "net/mpi/mpi.hpp"
#include "net/mpi/texts.hpp"

namespace meshpost::net {
namespace {

// Freeing a communicator is collective, and nobody knows when all processes have ended their
// engines. So communicators stay.
struct Communicators {
  std::mutex mutex;
  std::vector<MPI_Comm> all;
};
Communicators& communicators() {
  static auto* const one = new Communicators;
  return *one;
}

std::unique_ptr<Engine> make_mpi(std::string const& rest, std::string const& /*bind*/, Gpus gpus) {
  check_threads_of_mpi();
  if (gpus == Gpus::yes)
    throw Error(Kind::bad_environment, "network engine 'direct:mpi'",
                "it passes bytes of GPUs through memory of the host",
                "take direct:ofi, or mpi without 'direct:'");
  std::scoped_lock const lock(communicators().mutex);
  auto const number = parse_number(rest);
  if (!number || *number >= communicators().all.size())
    throw Error(Kind::bad_environment, "network engine 'mpi:" + rest + "'",
                "it names no communicator that this program has given to options_over()",
                "say mpi, and make the World with options_over(communicator)");
  return std::make_unique<mpi::Mpi>(communicators().all[*number]);
}

}  // namespace

void check_threads_of_mpi(char const* user, char const* remedy) {
  int initialised = 0, finalised = 0, level = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised || finalised)
    throw Error(
        Kind::misuse, user, finalised ? "MPI_Finalize has been called" : "MPI is not initialised",
        finalised ? "use it before that" : "call MPI_Init_thread with MPI_THREAD_MULTIPLE first");
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE)
    throw Error(Kind::bad_environment, user,
                "a thread of the library calls MPI beside the program's own, and MPI was "
                "initialised for less than MPI_THREAD_MULTIPLE",
                remedy);
}

std::string register_mpi(MPI_Comm communicator) {
  check_threads_of_mpi();
  MPI_Comm own = MPI_COMM_NULL;
  mpi::check(MPI_Comm_dup(communicator, &own), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  register_engine("mpi", make_mpi);
  std::scoped_lock const lock(communicators().mutex);
  communicators().all.push_back(own);
  return "mpi:" + std::to_string(communicators().all.size() - 1);
}

}  // namespace meshpost::net
