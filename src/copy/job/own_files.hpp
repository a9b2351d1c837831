#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "copy/job/part.hpp"
#include "meshpost/base/descriptor.hpp"

namespace meshpost::copying {

/// Memory files of this process that others may map: what JobMemory::allocate hands out on the
/// host. Thread-safe.
class OwnFiles : public std::enable_shared_from_this<OwnFiles> {
 public:
  /// `before_free` is called before a range goes away.
  explicit OwnFiles(std::function<void(char const* begin, u64 size)> before_free)
      : before_free_(std::move(before_free)) {}

  /// Zeroed; `device` is a CPU device whose memory it is, or null. \throws Error(out_of_memory)
  Allocation allocate(Bytes size, Device* device);
  struct Found {
    u64 id = 0;
    char const* begin = nullptr;
    u64 size = 0;
    Descriptor file;  ///< a copy
  };
  std::optional<Found> find(void const* pointer) const;
  /// Those that were freed since the last call.
  std::vector<AllocationName> take_freed();

 private:
  struct File {
    u64 id, size;
    Descriptor file;
  };
  void free(char* begin);

  std::function<void(char const*, u64)> const before_free_;
  mutable std::mutex mutex_;
  u64 last_ = 0;
  std::map<char const*, File> files_;  // by where they are mapped
  std::vector<AllocationName> freed_;
};

}  // namespace meshpost::copying
