#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

using Devices = std::vector<std::shared_ptr<Device>>;

/// The means of calibration: memory in each place to copy from and to, and streams for each link.
/// Places that are the same memory for a copy share theirs, so that nothing is measured twice.
/// These are all places of a NUMA node if no device pins memory.
///
/// Called by: one thread, except take(), see there.
class TestGround {
 public:
  /// \throws Error(bad_argument) if a place of `machine` is a device that is not among `devices`
  TestGround(Machine const& machine, Devices devices, Bytes size);

  /// Bytes of each place's two areas: one to copy from, one to copy to.
  Bytes size() const { return size_; }
  /// A name of the memory: equal for places that share theirs.
  std::string memory_of(u32 place) const;

  /// A copy over a link: `bytes` from `offset` of the source area to the same offset of the target
  /// area.
  struct Trip {
    Link const* link = nullptr;
    Bytes bytes{}, offset{};
  };
  /// Gets memory and streams for these trips, so that take() need not get them.
  void prepare(std::vector<Trip> const& trips);
  /// Makes a trip `times` times and returns when the bytes have arrived. `lane` chooses the stream:
  /// several threads may take trips at once, each in its own lane. \throws Error(device_failed)
  void take(Trip const& trip, u32 lane, u32 times);

 private:
  struct Areas {
    Allocation source, target;
  };
  Device& engine_of(Link const& link) const;
  Device* device_at(Place const& place) const;
  Stream& stream(Link const& link, u32 lane);
  Areas& areas(u32 place);

  Machine const& machine_;
  Devices devices_;
  Bytes size_;
  std::map<std::string, Areas> areas_;
  std::map<std::pair<std::string, u32>, std::unique_ptr<Stream>> streams_;
};

/// Seconds that a copy of `bytes` takes, alone: the median of `repetitions`.
double time_alone(TestGround& ground, Link const& link, Bytes bytes, u32 repetitions);

/// Seconds from the begin of the first to the end of the last when all trips are made at once, each
/// by its own thread. It is the median of `repetitions`, for one trip each. \throws
/// Error(out_of_memory) if the system has no thread to give; no trip is then in progress
double time_together(TestGround& ground, std::vector<TestGround::Trip> const& trips,
                     u32 repetitions);

}  // namespace meshpost::fabric
