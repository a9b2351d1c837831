#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/fabric/place.hpp"

namespace meshpost {

/// The part of the machine that moves the bytes of a link.
enum class Mover : u8 {
  host_threads,  ///< threads of the host, by loads and stores
  copy_engine,   ///< a device's copy engine, over a path of the hardware
  through_host   ///< the driver, through its own buffers in host memory: between devices
                 ///< without peer access, and between pageable memory and a device
};

/// A way from one place to another that one engine can take. Rates are 0 until measured.
struct Link {
  u32 from = 0, to = 0;  ///< positions in Machine::places; equal: within one place
  Mover mover = Mover::copy_engine;
  std::string medium;         ///< "memory", "PCIe 5.0 x16", "NVLink 18", ...
  double latency = 0;         ///< seconds of a copy, in addition to those for its bytes
  double rate = 0;            ///< bytes/s of large copies
  double rate_both_ways = 0;  ///< the same, while the opposite link is as busy

  bool operator==(Link const&) const = default;
};

/// A place and its properties.
struct PlaceInfo {
  Place place;
  std::string model;  ///< "NVIDIA H200", "Intel(R) Xeon(R) ..."
  u32 numa_node = 0;  ///< the node that its bus belongs to
  std::string bus;    ///< PCI address, empty for host memory
  Bytes size{};
  double rate_out = 0;  ///< bytes/s over all links that leave it at once; 0: not measured
  double rate_in = 0;   ///< the same, for those that arrive

  bool operator==(PlaceInfo const&) const = default;
};

/// The way in which threads of the host copy from host memory to host memory.
enum class HostWay : u8 {
  memcpy_one,     ///< the C library's memcpy, called once
  memcpy_shares,  ///< each thread calls it for an equal share, so large that it may bypass the
                  ///< caches
  memcpy_slices,  ///< all threads call it for small slices, until there are no more
  stream_one,     ///< one thread, with stores that bypass the caches
  stream_slices,  ///< all threads, with such stores, slice by slice
};
constexpr u32 host_ways = 5;

/// Rates of copies of one size within host memory, in each way.
struct HostRates {
  Bytes size{};
  std::array<double, host_ways> rates{};  ///< bytes/s, by HostWay; 0: not measured

  bool operator==(HostRates const&) const = default;
};

/// Places and the links between them. It is plain data: it can be printed, compared, stored and
/// used for plans without the machine that it describes.
struct Machine {
  static constexpr u32 current_version = 2;
  u32 version = current_version;
  std::string host;  ///< its name, and what distinguishes it from others: see fingerprint()
  std::string fingerprint;
  std::vector<PlaceInfo> places;
  std::vector<Link> links;
  std::vector<HostRates> host_copies{};  ///< empty until measured

  /// The position of a place. Nothing if it is not there.
  std::optional<u32> find(Place const& place) const;
  /// The fastest link from one place to another, null if there is none.
  Link const* link(u32 from, u32 to) const;
  bool operator==(Machine const&) const = default;
};

/// "host_threads", "copy_engine" or "through_host".
std::string_view to_string(Mover mover);
/// "memcpy_one", ...
std::string_view to_string(HostWay way);

/// A text that distinguishes this host, with these devices, from others: names, models, bus
/// addresses, driver.
std::string fingerprint(std::vector<std::shared_ptr<Device>> const& devices);

/// Places and links of this host, not measured. hwloc gives NUMA nodes and buses, NVML gives
/// NVLink, if the library was built with them and they are present. Thread-safe.
Machine discover(std::vector<std::shared_ptr<Device>> const& devices);

/// Limits and sizes of a calibration.
struct CalibrationOptions {
  Bytes large{u64{64} << 20};  ///< for rates; from 64 MiB on, host copies take four times it
  u32 repetitions = 3;         ///< of each measurement; medians are kept
};

/// Measures the ways to copy within host memory; this process then copies by the best ones.
/// Measures every link of `machine` alone, each pair both ways, and all links of each place at
/// once. Nothing else should run meanwhile. \throws Error(bad_environment) if it describes another
/// host
void calibrate(Machine& machine, std::vector<std::shared_ptr<Device>> const& devices,
               CalibrationOptions const& options = {});

/// To JSON, and back. \throws Error(bad_argument) naming what is missing, of the wrong type, out of
/// range or of another version
std::string to_json(Machine const& machine);
Machine machine_from_json(std::string const& text);

/// The machine with these devices. It is read from the cache if that is of this host and version.
/// Otherwise it is discovered, calibrated and stored. The cache is MESHPOST_MACHINE, or a file of
/// this host under XDG_CACHE_HOME or ~/.cache/meshpost. Kept for the process. Thread-safe. \throws
/// Error(bad_environment) if MESHPOST_MACHINE names a file of another host, or an existing file
/// that is not a machine file
Machine const& this_machine(std::vector<std::shared_ptr<Device>> const& devices);

/// Discovers and calibrates, no matter what is in the cache, and stores the result there for later
/// processes. \throws Error(bad_environment) as this_machine(), leaving the file as it is
Machine measure_machine(std::vector<std::shared_ptr<Device>> const& devices,
                        CalibrationOptions const& options = {});

}  // namespace meshpost
