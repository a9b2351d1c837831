#pragma once
#include <string>
#include <vector>

#include "meshpost/copy/job_memory.hpp"

namespace meshpost::copying {

/// An allocation as its owner names it to others: they map it once, and use it with offsets.
struct AllocationName {
  std::string kind;  ///< of device that maps it; "file": a memory file
  u64 id = 0;
  auto operator<=>(AllocationName const&) const = default;
};

/// What a process tells the others of its part of an exposure. A plain value.
struct Part {
  u64 size = 0;
  u64 address = 0;  ///< in its process
  u32 slot = 0;     ///< of its Gate
  MemoryKind memory = MemoryKind::pageable;
  bool on_host = true;  ///< threads of the host read and write it in place
  std::string device;   ///< its name there
  std::string bus;      ///< of the device, as all processes of the host see it
  // How to map it; a kind that is empty: it can't be, `why` says why.
  AllocationName allocation{};
  u64 allocation_size = 0, offset = 0;
  std::string handle;
  bool with_file = false;  ///< its file is passed along with this exposure
  std::string why;
  std::vector<AllocationName> freed{};  ///< since its last exposure

  std::string pack() const;
  /// \throws Error(bad_argument) for garbage
  static Part unpack(std::string_view bytes);
};

}  // namespace meshpost::copying
