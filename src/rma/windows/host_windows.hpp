#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "rma/windows/far_memory.hpp"
#include "rma/windows/windows.hpp"

namespace meshpost::detail {

/// The host as an endpoint: it reads and writes windows, raises counters of ranks, and waits for
/// its own counters.
class HostWindows : WorldMemory {
 public:
  /// Collective. `engine`: of the network, by its name.
  HostWindows(WorldMemory const& memory, RunQueue& runs, Windows& windows, HostEndpoint& endpoint,
              EndpointCounters& endpoints, Agreement const& agreement, std::string const& engine)
      : WorldMemory(memory),
        runs_(runs),
        windows_(windows),
        endpoint_(endpoint),
        endpoints_(endpoints),
        agreement_(agreement),
        far_(memory, runs, endpoint, endpoints, agreement, engine) {}

  HostId host(u32 process) const;
  std::string sender_name(u32 sender) const;  ///< "rank 3", "the host"
  /// Elements of a rank's part.
  u64 part_count(WindowInfo const& window, RankId rank);
  /// The part of a rank of this process, in its device's addresses.
  Part own_part(WindowInfo const& window, RankId rank);
  /// Reads if there is a target, else writes.
  void transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void* target,
                void const* source, u64 count);
  void raise(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
             void const* source, u64 count, Tag tag);
  void raise(WindowInfo const& window, StreamId stream, Tag tag);
  // \throws Error(bad_argument)
  void check_rank(std::string const& operation, RankId rank) const;
  void check_range(std::string const& operation, WindowRecord const& record, RankId rank,
                   u64 offset, u64 count) const;
  void check_tag(std::string const& operation, WindowInfo const& info, Tag tag) const;
  void check_count(std::string const& operation, u64 count) const;
  void check_stream(std::string const& operation, WindowInfo const& info, StreamId stream,
                    Tag tag) const;
  /// Raises a stream's counter, which was checked. \throws Error(peer_lost)
  void raise_endpoint(WindowInfo const& info, StreamId stream, Tag tag);
  FarMemory const& far() const { return far_; }
  FarMemory& far() { return far_; }
  /// Drops the notifications that an own device's stream has not consumed.
  void forget_counts(u32 own, u32 stream);
  void wait(WindowInfo const& window, Tag tag, u32 count, std::chrono::milliseconds deadline);
  /// After a failure: drops the notifications that ranks have sent to this host.
  void forget_counts();

 private:
  void transfer(WindowRecord const& record, u64 element_bytes, RankId rank, u64 offset,
                void* target, void const* source, u64 count);
  u32 count_of(WindowInfo const& info, Tag tag) const;

  RunQueue& runs_;
  Windows& windows_;
  HostEndpoint& endpoint_;
  EndpointCounters& endpoints_;
  Agreement const& agreement_;
  FarMemory far_;
};

}  // namespace meshpost::detail
