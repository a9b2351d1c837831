#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshpost {

/// One variable of the environment that the library reads.
struct Variable {
  std::string_view name;
  std::string_view meaning;
  std::string_view fallback;
};

/// Every variable that the library reads, for help texts and docs.
std::vector<Variable> const& variables();

/// Variables of the environment that nobody reads, but whose names are nearly those of such that
/// the library reads: "MESHPOST_DEVICE is not read; is MESHPOST_DEVICES meant?" The first World
/// warns of them.
std::vector<std::string> misspelt_variables();

/// The settings in the environment, checked. Thread-safe.
struct Config {
  std::string devices;                   ///< MESHPOST_DEVICES: "" means all GPUs, or CPU devices
  unsigned ranks = 0;                    ///< MESHPOST_RANKS: ranks of a device, 0: its default
  unsigned workers = 0;                  ///< MESHPOST_WORKERS: CPU worker threads, 0: one per core
  std::chrono::milliseconds deadline{};  ///< MESHPOST_DEADLINE: seconds without progress, 0: off
  /// MESHPOST_PEER_DEADLINE: seconds after which a silent process of the job is lost, or a network
  /// that owes something fails. 0: never. It belongs to the job, not to a World.
  std::chrono::milliseconds peer_deadline{};
  bool check_delivery = false;        ///< MESHPOST_CHECK=delivery
  bool apart = false;                 ///< MESHPOST_REACH=device
  std::optional<unsigned> lanes;      ///< MESHPOST_LANES: of each rank, 0: all puts go direct
  std::string trace;                  ///< MESHPOST_TRACE: file for the timeline, "" for none
  unsigned trace_events = 0;          ///< MESHPOST_TRACE_EVENTS: kept of each rank, stream, thread
  std::string trace_host;             ///< MESHPOST_TRACE_HOST: file for the host's timeline
  bool report_sync = false;           ///< MESHPOST_REPORT_SYNC=1
  std::string net;                    ///< MESHPOST_NET: engine between nodes, "": the best
  std::chrono::milliseconds start{};  ///< MESHPOST_START_DEADLINE: seconds for all processes
  unsigned dcuda_memory = 0;          ///< MESHPOST_DCUDA_MEMORY: MiB for cudaMalloc; 0: default
  std::string machine;                ///< MESHPOST_MACHINE: file of links, "": the user's cache

  /// Reads the environment.
  /// \throws Error(Kind::bad_environment) naming the variable, its value and what it may be.
  static Config from_environment();
};

/// A whole number in `text`, or nothing.
std::optional<unsigned long> parse_number(std::string_view text);

/// True if a debugger is attached to this process. Deadlines are off then.
bool debugger_attached();

}  // namespace meshpost
