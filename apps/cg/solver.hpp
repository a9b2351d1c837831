#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "problem.hpp"

namespace cg {

/// How a run went. The same in all processes but for the times, which are those of this process.
struct Outcome {
  Result result{};
  std::vector<double> history;  ///< r'r before each iteration, and at the end
  double seconds = 0;           ///< of all iterations
  double spent[phases] = {};    ///< of these seconds
};

/// A way to solve the system. Behind solve(), the problem's x is the solution and q = A x.
class Solver {
 public:
  virtual ~Solver() = default;
  /// "kernel", "host", "stream".
  virtual std::string name() const = 0;
  /// The product and the communication, for a line of the report.
  virtual std::string describe() const = 0;
  /// True if all modes for which this is true give the same bits.
  virtual bool same_bits() const { return true; }
  /// True if solve() overlaps products and exchanges when it measures phases, too.
  virtual bool overlaps_in_phases() const { return false; }
  /// Collective. `with_phases`: measure `spent` too, which may make the run slower.
  virtual Outcome solve(Limits const& limits, bool with_phases) = 0;
};

/// One kernel for all iterations. `most`: iterations of any run. `threads`: of the ranks of a
/// multiprocessor together, on GPUs. `trace`: file for the timeline of each run; empty: none.
/// Collective.
std::unique_ptr<Solver> make_kernel_solver(Problem const& problem, u32 most, u32 threads,
                                           std::string const& trace);
/// A kernel an operation, the host moves halos and sums. `against`: as --against of the studies.
/// `cusparse`: use it on GPUs, where it is built in. Collective.
/// \throws Error(bad_argument) as apps::make_exchange()
std::unique_ptr<Solver> make_host_solver(Problem const& problem, std::string const& against,
                                         bool cusparse);
/// The operations as in mode host, but streams exchange halos and sums. `most`: iterations of any
/// run. Collective. \throws Error(bad_argument) as the next
std::unique_ptr<Solver> make_stream_solver(Problem const& problem, u32 most, bool cusparse);

/// Throws unless each process has a device. Collective. \throws Error(bad_argument) in all of them
void require_devices(Problem const& problem, std::string const& mode);

}  // namespace cg
