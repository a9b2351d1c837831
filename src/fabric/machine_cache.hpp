#pragma once
#include <filesystem>
#include <optional>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// Where this_machine() keeps what it measured, and whether the user chose that.
struct CacheFile {
  std::filesystem::path path;  ///< empty: nowhere, for neither variable that says so is set
  bool chosen = false;         ///< by MESHPOST_MACHINE
};
CacheFile cache_file(std::string const& fingerprint);

/// The same for what is known of this host without its devices: the file that the user chose if
/// there is one, else one in the user's cache.
CacheFile host_file();
/// What that file has of copies within host memory; nothing if it is not there, or can't be used:
/// who needs its links says so.
std::optional<std::vector<HostRates>> kept_host_rates(CacheFile const& file);
void keep_host_rates(std::vector<HostRates> const& measured, CacheFile const& file);

/// `machine` without the devices that are not among `devices`, if it is of this host and has all of
/// those; nothing else.
std::optional<Machine> part_of(Machine const& machine,
                               std::vector<std::shared_ptr<Device>> const& devices);

/// Whether the text has the members of a machine file, of any version and whatever their values.
/// What has not is somebody's file of another kind, which must not be replaced.
bool is_machine_file(std::string const& text);

/// Writes through a file beside it, so that a reader sees all or nothing. Warns if it can't.
void store(Machine const& machine, std::filesystem::path const& file);

/// Discovers, calibrates and stores.
Machine measure_into(CacheFile const& file, std::vector<std::shared_ptr<Device>> const& devices,
                     CalibrationOptions const& options);

/// As this_machine(), without keeping it in the process.
Machine cached_machine(std::vector<std::shared_ptr<Device>> const& devices,
                       CalibrationOptions const& options = {});

}  // namespace meshpost::fabric
