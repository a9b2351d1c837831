#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "meshpost/base/descriptor.hpp"

namespace meshpost::net::ofi {

/// Over libfabric's shm: the name of an endpoint's shared memory, as shm_open() takes it. It begins
/// with the number of its process.
std::string shared_memory_of(std::string const& native);

/// Shared memory of a peer that lives, which it takes away when it ends, unless it is killed. Who
/// survives does it then.
///
/// A process is known by a descriptor, which its number's next owner can't be taken for, and the
/// file by its inode: it was this user's, and that process had it mapped, which also says that the
/// number means the same process here as to the peer. Another process of the same number makes a
/// file anew: libfabric does not take over one that says that it is of a process that lives.
class Leftover {
 public:
  /// Nothing where any of this is not known for certain.
  static std::optional<Leftover> of(std::string const& name);

  /// Removes it if its process has ended. Thread-safe.
  void remove() const noexcept;

 private:
  Leftover(std::string name, Descriptor process, dev_t device, ino_t inode)
      : name_(std::move(name)), process_(std::move(process)), device_(device), inode_(inode) {}

  std::string name_;
  Descriptor process_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace meshpost::net::ofi
