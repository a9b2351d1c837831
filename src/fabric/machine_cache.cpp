#include "fabric/machine_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <system_error>

#include "base/hash.hpp"
#include "fabric/fingerprint.hpp"
#include "fabric/host_ways.hpp"
#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost {
namespace fabric {
namespace {

std::optional<std::string> read_file(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The text of the file that the user chose. Nothing if there is none. Refuses any other kind of
// file: the user may have named it by mistake, and measurements would replace it.
std::optional<std::string> read_chosen(std::filesystem::path const& path) {
  auto const refuse = [&](std::string cause) {
    throw Error(Kind::bad_environment, "MESHPOST_MACHINE=" + path.string(), std::move(cause),
                "name a machine file (meshpost-topo --json writes one) or a path that does not "
                "exist yet, or unset MESHPOST_MACHINE");
  };
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return std::nullopt;
  if (!std::filesystem::exists(status)) refuse("its status can't be read: " + error.message());
  if (!std::filesystem::is_regular_file(status)) refuse("it exists and is not a regular file");
  auto text = read_file(path);
  if (!text) refuse("it exists and can't be read");
  if (!is_machine_file(*text))
    refuse("it exists and is not a machine file; measurements would replace it");
  return text;
}

// The file's data about these devices; nothing if they must be measured again.
std::optional<Machine> known(CacheFile const& file,
                             std::vector<std::shared_ptr<Device>> const& devices) {
  auto const text = file.chosen ? read_chosen(file.path) : read_file(file.path);
  if (!text) return std::nullopt;
  Machine machine;
  try {
    machine = machine_from_json(*text);
  } catch (Error const& error) {
    warn(fmt::format("the machine file {} can't be used: {}; measuring again", file.path.string(),
                     error.what()));
    return std::nullopt;
  }
  auto part = part_of(machine, devices);
  if (!part && file.chosen)
    throw Error(
        Kind::bad_environment, "MESHPOST_MACHINE=" + file.path.string(),
        fmt::format("it describes '{}', this is '{}'", machine.fingerprint, fingerprint(devices)),
        "name a file of this host with these devices, or one that is not there yet, or "
        "unset MESHPOST_MACHINE");
  return part;
}

// Empty if neither variable for the folder is set.
std::filesystem::path users_folder() {
  if (char const* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::filesystem::path(cache) /
           "meshpost";  // its specification says to ignore relative ones
  if (char const* const home = std::getenv("HOME"); home && *home != '\0')
    return std::filesystem::path(home) / ".cache" / "meshpost";
  return {};
}

}  // namespace

CacheFile cache_file(std::string const& fingerprint) {
  if (auto const chosen = Config::from_environment().machine; !chosen.empty())
    return {chosen, true};
  auto const folder = users_folder();
  if (folder.empty()) return {};
  return {folder / fmt::format("machine-{:016x}.json", hash_of(fingerprint)), false};
}

CacheFile host_file() {
  if (auto const chosen = Config::from_environment().machine; !chosen.empty())
    return {chosen, true};
  auto const folder = users_folder();
  if (folder.empty()) return {};
  return {folder / fmt::format("host-{:016x}.json", hash_of(host_part())), false};
}

std::optional<std::vector<HostRates>> kept_host_rates(CacheFile const& file) try {
  auto const text = file.chosen ? read_chosen(file.path) : read_file(file.path);
  if (!text) return std::nullopt;
  auto const machine = machine_from_json(*text);
  if (!part_of(machine, {}) || machine.host_copies.empty()) return std::nullopt;
  return machine.host_copies;
} catch (Error const&) {
  return std::nullopt;
}

void keep_host_rates(std::vector<HostRates> const& measured, CacheFile const& file) {
  if (file.path.empty() || measured.empty()) return;
  auto machine = discover({});
  machine.host_copies = measured;
  store(machine, file.path);
}

std::optional<Machine> part_of(Machine const& machine,
                               std::vector<std::shared_ptr<Device>> const& given) {
  auto const devices = physical_devices(given);
  auto const wanted = fingerprint(devices);
  if (!(machine.fingerprint + "; ").starts_with(host_part() + "; ")) return std::nullopt;
  Machine part = machine;
  part.fingerprint = wanted;
  part.places.clear();
  part.links.clear();
  std::map<u32, u32> position;  // position there: position here
  u32 found = 0;
  for (u32 i = 0; i < machine.places.size(); ++i) {
    auto const& info = machine.places[i];
    bool const here = std::ranges::any_of(devices, [&](auto const& device) {
      return device->name() == info.place.name() && device->info().model == info.model &&
             device->info().bus == info.bus;
    });
    if (!here && !info.place.on_host()) continue;
    found += here;
    position[i] = static_cast<u32>(part.places.size());
    part.places.push_back(info);
  }
  if (found != devices.size()) return std::nullopt;
  for (auto link : machine.links) {
    if (!position.contains(link.from) || !position.contains(link.to)) continue;
    link.from = position[link.from];
    link.to = position[link.to];
    part.links.push_back(std::move(link));
  }
  return part;
}

void store(Machine const& machine, std::filesystem::path const& file) {
  static std::atomic<u32> number{0};
  auto beside = file;
  beside += fmt::format(".{}.{}", getpid(), number.fetch_add(1));
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  bool written = false;
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out << to_json(machine);
    out.close();
    written = out.good();
  }
  error.clear();
  if (written) std::filesystem::rename(beside, file, error);
  if (written && !error) return;
  std::error_code unused;
  std::filesystem::remove(beside, unused);
  warn(fmt::format(
      "the measurements of this machine can't be stored in {}{}; each process measures again until "
      "MESHPOST_MACHINE names a file that can be written",
      file.string(), error ? ": " + error.message() : ""));
}

Machine measure_into(CacheFile const& file, std::vector<std::shared_ptr<Device>> const& devices,
                     CalibrationOptions const& options) {
  auto machine = discover(devices);
  calibrate(machine, devices, options);
  if (!file.path.empty()) store(machine, file.path);
  if (!file.chosen) keep_host_rates(machine.host_copies, host_file());  // for those without devices
  return machine;
}

Machine cached_machine(std::vector<std::shared_ptr<Device>> const& devices,
                       CalibrationOptions const& options) {
  auto const file = cache_file(fingerprint(devices));
  if (auto machine = known(file, devices)) {
    use_host_rates(machine->host_copies);
    return *std::move(machine);
  }
  return measure_into(file, devices, options);
}

}  // namespace fabric

Machine measure_machine(std::vector<std::shared_ptr<Device>> const& devices,
                        CalibrationOptions const& options) {
  refuse_after_fork("measure_machine");
  auto const file = fabric::cache_file(fingerprint(devices));
  if (file.chosen) fabric::known(file, devices);  // only to throw if it is another host's
  return fabric::measure_into(file, devices, options);
}

Machine const& this_machine(std::vector<std::shared_ptr<Device>> const& devices) {
  refuse_after_fork("this_machine");
  // Held during a measurement: two at the same time would disturb each other.
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::unique_ptr<Machine const>>;
  std::scoped_lock const lock(mutex);
  auto& machine = (*known)[fingerprint(devices)];
  if (!machine) machine = std::make_unique<Machine const>(fabric::cached_machine(devices));
  return *machine;
}

}  // namespace meshpost
