#pragma once
#include <string>
#include <vector>

#include "world/process_group.hpp"

namespace meshpost::copying {

/// Reads and writes memory of other processes of the node by the operating system
/// (process_vm_readv, process_vm_writev), where that is permitted.
class OtherMemory {
 public:
  /// Tries it with each other process. Collective.
  explicit OtherMemory(ProcessGroup const& group);

  bool reaches(u32 process) const { return why_not_[process].empty(); }
  /// Names the refusal and the setting to change.
  std::string const& why_not(u32 process) const { return why_not_[process]; }

  /// True if both ends of a range can be read. Memory of some drivers can't, though it is mapped.
  bool readable(u32 process, u64 there, u64 size) const;

  enum class Way : u8 { read, write };
  /// Copies between host memory of this process and an address of another's. Thread-safe.
  /// \throws Error(bad_argument) where nothing is mapped there; Error(peer_lost)
  void copy(Way way, u32 process, u64 there, char* here, u64 size) const;

 private:
  void transfer(Way way, u32 process, u64 there, char* here, u64 size) const;

  ProcessGroup const& group_;
  std::vector<int> pids_;
  std::vector<std::string> why_not_;
};

}  // namespace meshpost::copying
