#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "meshpost/rma/world.hpp"
#include "rma/windows/endpoint_counters.hpp"
#include "rma/windows/freed_windows.hpp"
#include "rma/windows/record.hpp"
#include "rma/world_memory.hpp"

namespace meshpost::detail {

/// An operation on a handle that is no window's.
Error never_made(Kind kind, std::string_view operation);

/// The windows of a World. The caller holds the World's mutex, or supervises a run.
class Windows : WorldMemory {
 public:
  Windows(u32 world, WorldMemory const& memory, HostEndpoint& endpoint, EndpointCounters& endpoints)
      : WorldMemory(memory), number_(world), endpoint_(endpoint), endpoints_(endpoints) {}

  /// Collective, as free() is. \throws Error(bad_argument, out_of_memory, bad_environment)
  WindowInfo make(World::WindowSpec const& spec);
  void free(WindowInfo const& info);
  /// Unmaps other processes' memory of users. True if there may be any.
  bool unmap();

  std::map<u32, WindowRecord> const& all() const { return windows_; }
  /// \throws Error(bad_argument) naming the operation
  WindowRecord const& record_of(WindowInfo const& info, std::string_view operation) const;
  /// The address of a rank's part for an own device, or for the host if there is no such device.
  char* part_of(std::optional<u32> own, WindowRecord const& record, u32 rank) const;
  GlobalAddress address_of(WindowRecord const& record, u32 rank) const;
  /// For ranks of an own device.
  FreedWindows freed(u32 own_device) const { return freed_.on(own_device, next_); }

  /// For messages: "window 'inbox'".
  std::string name(u32 number) const;
  /// "window 'inbox' of rank 3 at element 7", or the address alone.
  std::string describe(void const* address) const;

 private:
  void furnish(World::WindowSpec const& spec, WindowRecord& record);
  void give_back(WindowRecord const& record);
  void place_extents(World::WindowSpec const& spec, WindowRecord& record);
  void upload_parts(WindowRecord const& record);
  // Memory of users (user_windows.cpp):
  void register_memory(World::WindowSpec const& spec, WindowRecord& record);
  void check_memory(World::WindowSpec const& spec);
  std::string offer_memory(World::WindowSpec const& spec, WindowRecord& record,
                           std::vector<Descriptor>& files);
  void take_memory(WindowRecord& record, std::vector<std::string> const& offers,
                   std::map<std::pair<u32, u32>, Descriptor> const& files);
  bool any_without_devices() const;

  u32 const number_;  // of the World
  HostEndpoint& endpoint_;
  EndpointCounters& endpoints_;
  u32 next_ = 1;
  std::map<u32, WindowRecord> windows_;
  FreedNumbers freed_;
};

}  // namespace meshpost::detail
