#pragma once
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// The World that benchmarks share: `devices` of those that MESHPOST_DEVICES names, with `ranks`
/// ranks each (0: the default). Null if there are not so many devices. Kept until another one is
/// requested.
std::shared_ptr<meshpost::World> world(meshpost::u32 devices, meshpost::u32 ranks = 0);

/// The first `count` devices of those that MESHPOST_DEVICES names, as WorldOptions takes them.
/// Empty if there are not so many.
std::string first_devices(meshpost::u32 count);

/// Devices that MESHPOST_DEVICES names.
meshpost::u32 device_count();

/// Threads of a rank in benchmarks that don't vary it.
meshpost::Launch const& launch();

/// That have passed since then.
inline double microseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - since)
      .count();
}

/// "cuda" or "cpu"
std::string kind();

/// This process of a job, and how many there are.
meshpost::u32 process();
meshpost::u32 processes();

/// This process's device in a job. Processes beyond the GPUs share them.
std::string own_device();

/// Registers benchmarks between the processes of a job.
void add_between_processes();
void add_streams_between_processes();  ///< of two processes

/// Registers plans that this process makes, or two of a job.
void add_plans();

/// The engine alone between two processes. Only in builds with engines.
void add_engine_between_processes();

/// Registers benchmarks that are compared with other libraries, with messages of these sizes:
/// between two devices, and among all that MESHPOST_DEVICES names.
void add_pairs(std::vector<std::int64_t> const& sizes);
void add_streams(std::vector<std::int64_t> const& sizes);
void add_groups(std::vector<std::int64_t> const& sizes);
/// The same without messages: launches on all devices that MESHPOST_DEVICES names.
void add_launches();

}  // namespace bench
