#pragma once
#include <functional>
#include <optional>
#include <string>

#include "check.hpp"
#include "executor.hpp"
#include "options.hpp"
#include "participants.hpp"

namespace meshpost::gemm {

/// Bytes that the copies of one run have brought to a device, and those that the formula gives.
struct FetchedBytes {
  u64 copied = 0, formula = 0;
  bool equal() const { return copied == formula; }
};

/// Medians over the runs of a job, in seconds.
struct Skew {
  bool one_clock = true;          ///< else `begin` and `end` are not known
  double begin = 0, end = 0;      ///< from the first process to the last
  std::vector<double> processes;  ///< each one's own time
};

/// Products in a row, each result the next A.
struct Reuse {
  u32 products = 0;
  double seconds = 0;  ///< of all products
  std::optional<Verdict> freivalds;
};

/// The same product by another plan.
struct Schedule {
  std::string name;
  double seconds = 0;
  bool same = false;  ///< the plan is that of the main measurement
  std::optional<Verdict> freivalds;
};

/// Results for one size. Times are medians, in seconds.
struct Figures {
  Problem problem;
  double seconds = 0;                ///< on all devices: products with fetches meanwhile
  std::optional<double> alone;       ///< the whole product on one device, if it fits there
  double products = 0, fetches = 0;  ///< one half of the work alone, on all devices
  std::optional<double> openblas;    ///< CPU devices: one call of OpenBLAS with all their threads
  u64 exchanged = 0, buffers = 0;    ///< bytes
  u64 panel = 0;
  MemoryUse memory;
  std::vector<FetchedBytes> fetched;  ///< by device
  std::optional<Skew> skew;           ///< in a job of several processes
  std::optional<Reuse> reuse;
  std::vector<Schedule> schedules;
  std::optional<Verdict> equal, freivalds;
  std::optional<u64> fingerprint;  ///< of C's bits: the same on however many processes

  double operations() const;
  /// Time of fetches that the overlap did not hide, and time that it hid.
  double exposed() const { return std::max(0.0, seconds - products); }
  double hidden() const { return std::max(0.0, fetches - exposed()); }
  bool passed() const;
};

/// Multiplies matrices of this size, times it, and checks it in the first process. Collective over
/// the processes. Calls `note` with the name of each phase. \throws Error(out_of_memory) if the
/// parts don't fit on the devices; it names needed and free bytes
Figures measure(Problem const& problem, Options const& options, Participants const& all,
                std::function<void(std::string const&)> const& note);

/// Threads of each CPU device: options.threads, or its share of the cores.
u32 threads_each(Options const& options, Devices const& devices);

}  // namespace meshpost::gemm
