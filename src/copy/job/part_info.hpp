#pragma once
#include <string>
#include <vector>

#include "meshpost/copy/job_memory.hpp"
#include "world/mappable.hpp"

namespace meshpost::copying {

/// A process's part of an exposure, as it is told to the others. A plain value.
struct PartInfo {
  u64 size = 0;
  u64 address = 0;  ///< in its process
  u32 slot = 0;     ///< of its AccessEpochs
  MemoryKind memory = MemoryKind::pageable;
  bool on_host = true;    ///< threads of the host read and write it in place
  std::string device;     ///< its name there
  std::string bus;        ///< of the device, as all processes of the host see it
  Mappable allocation{};  ///< that it lies in; one without a name: `why` says why
  u64 offset = 0;         ///< in it
  std::string why;
  std::vector<AllocationName> freed{};  ///< since its last exposure

  std::string pack() const;
  /// \throws Error(bad_argument) for garbage
  static PartInfo unpack(std::string_view bytes);
};

}  // namespace meshpost::copying
