#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshpost/rma/window.hpp"
#include "rma/windows/endpoint_counters.hpp"
#include "rma/windows/global_addresses.hpp"
#include "rma/windows/host_endpoint.hpp"
#include "world/imports.hpp"

namespace meshpost::detail {

/// While it lives, the memory map has memory that the user has registered.
class Registered {
 public:
  explicit Registered(MemoryRange range) : range_(range) { memory_map().add(range_); }
  ~Registered() { memory_map().forget(range_.begin, range_.size); }
  Registered(Registered const&) = delete;
  Registered& operator=(Registered const&) = delete;

 private:
  MemoryRange range_;
};

/// Memory of users that a window lies over, in the addresses of this process.
struct UserMemory {
  explicit UserMemory(GlobalAddresses& of_world)
      : addresses(of_world), numbers(addresses.take_numbers()) {}
  ~UserMemory() { addresses.give_numbers(numbers); }
  UserMemory(UserMemory const&) = delete;
  UserMemory& operator=(UserMemory const&) = delete;

  /// Unmaps other processes' memory.
  void unmap() {
    mapped.clear();
    imports.emplace();
  }

  GlobalAddresses& addresses;
  u64 const numbers;  // the first of its numbers there
  std::vector<std::unique_ptr<Registered>> registered;
  std::optional<Imports> imports{std::in_place};
  // Mapped memory of other processes, by physical device (null: for the host) and world rank.
  std::map<std::pair<Device*, u32>, char*> mapped;
};

struct WindowRecord {
  struct Part {
    u64 count = 0;
    GlobalAddress address;
  };
  WindowInfo info;
  std::string name;
  u64 element_bytes = 0;
  std::vector<Part> parts;  // by world rank; empty: uniform
  u64 data_bytes = 0;       // heap bytes to give back, at info.offset
  u64 counter_bytes = 0;
  u64 host_bytes = 0;  // heap bytes to give back, at info.host_counters
  std::shared_ptr<HostCounters> host;
  std::unique_ptr<UserMemory> users;  // null: it lies in the heap
};

}  // namespace meshpost::detail
