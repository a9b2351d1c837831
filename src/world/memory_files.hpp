#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/device/device.hpp"

namespace meshpost {

/// Memory of the host that other processes may map. Thread-safe.
class MemoryFiles {
 public:
  /// Zeroed; `device` is a CPU device whose memory it is, or null. \throws Error(out_of_memory)
  Allocation allocate(Bytes size, Device* device);
  struct Found {
    u64 id = 0;  ///< never given twice
    char const* begin = nullptr;
    u64 size = 0;
    Descriptor file;  ///< a copy
  };
  /// The file that `pointer` points into.
  /// \throws Error(bad_environment) if no further file can be opened
  std::optional<Found> find(void const* pointer) const;

  /// While a Watch lives, `freed` is called before a file's memory is unmapped. Calls for several
  /// files may be concurrent.
  class Watch {
   public:
    using Freed = std::function<void(u64 id, char const* begin, u64 size)>;
    explicit Watch(Freed freed);
    ~Watch();
    Watch(Watch const&) = delete;
    Watch& operator=(Watch const&) = delete;

   private:
    friend class MemoryFiles;
    Freed freed_;
  };

 private:
  struct File {
    u64 id, size;
    Descriptor file;
  };
  void free(char* begin);

  mutable std::mutex mutex_;
  u64 last_ = 0;
  std::map<char const*, File> files_;  // by where they are mapped
  std::shared_mutex watching_;         // held while watches are told
  std::list<Watch*> watches_;
};

/// Those of this process.
MemoryFiles& memory_files();

}  // namespace meshpost
