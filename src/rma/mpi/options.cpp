#include "meshpost/rma/mpi.hpp"
#include "net/mpi/make.hpp"
#include "world/mpi/meet.hpp"
#include "world/processes.hpp"

namespace meshpost {
namespace {

constexpr char const* operation = "join over MPI";

void check_mpi() {
  int initialised = 0, finalised = 0, level = 0, main = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised)
    throw Error(Kind::misuse, operation, "MPI is not initialised",
                "call MPI_Init or MPI_Init_thread first");
  if (finalised)
    throw Error(Kind::misuse, operation, "MPI_Finalize has been called",
                "make the options before it");
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&main);
  if (!main && level < MPI_THREAD_SERIALIZED)
    throw Error(Kind::misuse, operation,
                "MPI was initialised for calls of its main thread only, and this is another",
                "call it from that thread, or MPI_Init_thread with MPI_THREAD_MULTIPLE");
}

void check_communicator(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL)
    throw Error(Kind::bad_argument, operation, "the communicator is MPI_COMM_NULL",
                "give one that this process is in; processes outside make no call");
  int inter = 0;
  MPI_Comm_test_inter(communicator, &inter);
  if (inter)
    throw Error(Kind::bad_argument, operation, "it is an intercommunicator",
                "give one of a single group (MPI_Intercomm_merge makes one of both)");
}

bool is_mpi(std::string const& net) { return net == "mpi" || net.ends_with(":mpi"); }

}  // namespace

WorldOptions options_over(MPI_Comm communicator, WorldOptions options) {
  check_mpi();
  check_communicator(communicator);
  if (is_mpi(options.net)) net::check_threads_of_mpi();
  auto const job = meet_over(communicator);
  if (job.alone()) {
    options.alone = true;
    return options;
  }
  options.processes = std::make_shared<Processes>(job);
  // All processes are here, so the calls below are safely collective, once all want the same
  // network.
  options.processes->exchange(options.processes->take_channel(),
                              "join over MPI, with network '" + options.net + "'", {});
  if (is_mpi(options.net)) {
    auto const made = net::register_mpi(communicator);
    options.net = options.net.substr(0, options.net.size() - 3) + made;
  }
  return options;
}

}  // namespace meshpost
