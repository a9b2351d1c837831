#pragma once
// A case study: a program with one kernel for all steps, beside the same program as kernels and
// communication of the host. Both are run several times, in turns, and must give the same result.
#include <meshpost/meshpost.hpp>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/figures.hpp"
#include "exchange.hpp"
#include "options.hpp"
#include "samples.hpp"

namespace meshpost::apps {

/// The devices, and how often each version runs.
WorldOptions world_of(StudyOptions const& options);

/// The least of the values of all processes. Collective.
u64 least(World const& world, u64 mine);
/// True if it is true in all processes. Collective.
bool in_all(World const& world, bool mine);
/// A launch has the same arguments in all processes, so they decide together. Collective.
bool all_on_gpus(World const& world);
bool all_in_host_memory(World const& world);
/// Ranks that share a multiprocessor of a GPU, or a core; 1 in a process without devices.
u32 ranks_per_processor(World const& world);
/// Threads of a rank on a GPU: so many that all ranks of a multiprocessor have `most` together.
u32 threads_of_rank(World const& world, u32 most);

/// A program in both versions, over one World.
class Study {
 public:
  virtual ~Study() = default;
  /// Sets the data back to where each run begins. Not timed. Collective.
  virtual void reset() = 0;
  /// The one kernel: returns when it is done. Collective.
  virtual void run_kernel(Launch const& launch) = 0;
  /// Puts one step of the other version on the streams of `exchange` (Exchange::prepare).
  virtual void step(Exchange& exchange, u32 number) = 0;
  virtual u32 steps() const = 0;
  /// The memory of each device of this process that messages come from and go to.
  virtual std::vector<std::span<std::byte>> memories() const = 0;
  /// The result of the last run, in process 0; empty in the others. Collective.
  virtual std::vector<std::byte> result() = 0;
};

/// How both versions did.
struct Comparison {
  std::string against;  ///< kind of communication; empty: only the kernel ran
  Samples kernel, two_model, communication;
  bool identical = true;          ///< all results of both versions are equal to the bit
  std::vector<std::byte> result;  ///< of the kernel, in process 0
};

/// Runs both versions `options.repetitions` times each, in turns, after one run of each that does
/// not count. In some order, all in one process: a machine that gets slower meanwhile slows both.
/// \throws Error as they do; Error(bad_argument) as make_exchange()
Comparison compare(World& world, Study& study, StudyOptions const& options);

/// Prints the rows that all studies have, and returns what they have in their figures.
/// {"devices", "processes", "ranks_per_device", "against", "kernel", "two_model", "communication",
/// "identical"}; the times are json_of(Samples), seconds of a whole run.
nlohmann::json report(World const& world, Comparison const& comparison,
                      StudyOptions const& options);

}  // namespace meshpost::apps
