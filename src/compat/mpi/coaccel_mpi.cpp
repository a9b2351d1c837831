#include "meshpost/compat/coaccel_mpi.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "compat/coaccel_error.hpp"
#include "compat/coaccel_network.hpp"
#include "meshpost/base/config.hpp"
#include "net/mpi/check.hpp"
#include "net/mpi/make.hpp"
#include "net/mpi/texts.hpp"

using namespace meshpost;

namespace {

constexpr char const* operation = "coaccel_mpi_init";

// All processes make this call, and all throw if one has an error.
void agree(MPI_Comm comm, std::optional<Error> const& error) {
  int const failed = error ? 1 : 0;
  int any = 0;
  net::mpi::check(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  if (error) throw Error(*error);
  if (any)
    throw Error(Kind::misuse, operation, "it has failed in another process of the communicator",
                "see coaccel_last_error() of the other processes");
}

template <class Work>
std::optional<Error> error_of(Work&& work) {
  try {
    work();
  } catch (...) {
    return caught(operation);
  }
  return std::nullopt;
}

// MPI_Finalize frees the attributes of MPI_COMM_SELF first, while MPI still works.
int at_finalize(MPI_Comm, int, void*, void*) {
  if (auto const one = coaccel::network()) one->end("MPI_Finalize has been called");
  return MPI_SUCCESS;
}

void end_at_finalize() {
  int key = MPI_KEYVAL_INVALID;
  net::mpi::check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr),
                  "MPI_Comm_create_keyval");
  net::mpi::check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
}

std::vector<std::string> exchange_addresses(MPI_Comm comm, std::string const& own) {
  using Text = std::array<char, 64>;  // "mpi1/2147483647/4294967295" is the longest
  int processes = 0, rank = 0;
  MPI_Comm_size(comm, &processes);
  MPI_Comm_rank(comm, &rank);
  Text mine{};
  std::memcpy(mine.data(), own.data(), std::min(own.size(), mine.size() - 1));
  std::vector<Text> all(static_cast<std::size_t>(processes));
  net::mpi::check(
      MPI_Allgather(mine.data(), sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, comm),
      "MPI_Allgather");
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (auto const& text : all) texts.emplace_back(text.data());
  texts[static_cast<std::size_t>(rank)].clear();
  return texts;
}

// MESHPOST_NET may put another engine around MPI's, for tests: "shuffled:7:mpi".
std::string around_mpi(std::string const& net) {
  return net.ends_with(":mpi") ? net.substr(0, net.size() - 3) : "";
}

void begin(MPI_Comm comm, Config const& config) {
  auto const name = around_mpi(config.net) + net::register_mpi(comm);
  std::unique_ptr<net::Engine> engine;
  agree(comm, error_of([&] { engine = net::make_engine(name, "", net::Gpus::no); }));
  auto const addresses = exchange_addresses(comm, engine->address());
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::shared_ptr<coaccel::Network> network;
  agree(comm, error_of([&] {
          engine->connect(addresses);
          network = std::make_shared<coaccel::Network>(std::move(engine), static_cast<u32>(rank),
                                                       static_cast<u32>(addresses.size()),
                                                       config.deadline);
          end_at_finalize();
        }));
  coaccel::set_network(std::move(network));  // in all processes, or in none
}

}  // namespace

int coaccel_mpi_init(MPI_Comm comm) {
  bool const done = coaccel::guarded(operation, [&] {
    refuse_after_fork(operation);
    net::mpi::check_may_call(operation);
    net::mpi::check_communicator(operation, comm);
    std::optional<Config> config;  // read where all learn of an error
    agree(comm, error_of([&] {
            config = Config::from_environment();
            if (coaccel::network())
              throw Error(Kind::misuse, operation, "it has been called before",
                          "call it once, with a communicator of all processes that copy");
            net::check_threads_of_mpi(operation, "call MPI_Init_thread with MPI_THREAD_MULTIPLE");
          }));
    begin(comm, *config);
    return true;
  });
  return done ? 0 : 1;
}
