#pragma once
#include <filesystem>
#include <optional>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// The file in which this_machine() keeps its measurements.
struct CacheFile {
  std::filesystem::path path;  ///< empty: nowhere, because neither variable for it is set
  bool chosen = false;         ///< true: by MESHPOST_MACHINE
};
CacheFile cache_file(std::string const& fingerprint);

/// The same for the data of this host without its devices. It is the file that the user chose if
/// there is one, else one in the user's cache.
CacheFile host_file();
/// Rates of copies within host memory, from that file. Nothing if the file does not exist or can't
/// be used; code that needs its links reports that.
std::optional<std::vector<HostRates>> kept_host_rates(CacheFile const& file);
void keep_host_rates(std::vector<HostRates> const& measured, CacheFile const& file);

/// `machine` without the devices that are not among `devices`. Only if it is of this host and has
/// all of `devices`; else nothing.
std::optional<Machine> part_of(Machine const& machine,
                               std::vector<std::shared_ptr<Device>> const& devices);

/// True if the text has the members of a machine file, of any version and with any values. A file
/// without them is of another kind, and must not be replaced.
bool is_machine_file(std::string const& text);

/// Writes through a file beside it, so that a reader sees all or nothing. Warns if it can't write.
void store(Machine const& machine, std::filesystem::path const& file);

/// Discovers, calibrates and stores.
Machine measure_into(CacheFile const& file, std::vector<std::shared_ptr<Device>> const& devices,
                     CalibrationOptions const& options);

/// As this_machine(), without keeping it in the process.
Machine cached_machine(std::vector<std::shared_ptr<Device>> const& devices,
                       CalibrationOptions const& options = {});

}  // namespace meshpost::fabric
