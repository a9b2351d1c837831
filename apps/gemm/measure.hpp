#pragma once
#include <functional>
#include <optional>
#include <string>

#include "check.hpp"
#include "executor.hpp"
#include "options.hpp"

namespace meshpost::gemm {

/// Results for one size. Times are medians, in seconds.
struct Figures {
  Problem problem;
  double seconds = 0;                ///< on all devices: products with fetches meanwhile
  std::optional<double> alone;       ///< the whole product on one device, if it fits there
  double products = 0, fetches = 0;  ///< one half of the work alone, on all devices
  std::optional<double> openblas;    ///< CPU devices: one call of OpenBLAS with all their threads
  u64 exchanged = 0, buffers = 0;    ///< bytes
  u64 panel = 0;
  std::optional<Verdict> equal, freivalds;
  std::optional<u64> fingerprint;  ///< of C's bits: the same on however many processes

  double operations() const;
  /// Time of fetches that the overlap did not hide, and time that it hid.
  double exposed() const { return std::max(0.0, seconds - products); }
  double hidden() const { return std::max(0.0, fetches - exposed()); }
  bool passed() const { return (!equal || equal->passed()) && (!freivalds || freivalds->passed()); }
};

/// A device of this process.
Device& own_device(Devices const& devices);

/// Multiplies matrices of this size, times it, and checks it in the first process. Collective over
/// the processes of `spread`. Calls `note` with the name of each phase. \throws
/// Error(out_of_memory) if the parts don't fit on the devices
Figures measure(Problem const& problem, Options const& options, Devices const& devices,
                Spread const& spread, std::function<void(std::string const&)> const& note);

/// Threads of each CPU device: options.threads, or its share of the cores.
u32 threads_each(Options const& options, Devices const& devices);

}  // namespace meshpost::gemm
