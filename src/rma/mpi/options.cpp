#include "meshpost/rma/mpi.hpp"
#include "net/mpi/check.hpp"
#include "net/mpi/make.hpp"
#include "world/mpi/meet.hpp"
#include "world/processes.hpp"

namespace meshpost {
namespace {

constexpr char const* operation = "join over MPI";

bool is_mpi(std::string const& net) { return net == "mpi" || net.ends_with(":mpi"); }

}  // namespace

WorldOptions options_over(MPI_Comm communicator, WorldOptions options) {
  net::mpi::check_may_call(operation);
  net::mpi::check_communicator(operation, communicator);
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
