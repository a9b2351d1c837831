#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/fabric/place.hpp"

namespace meshpost::copying {

/// Buffers of one size at a place between the ends of a chain, lent from a pool that is kept for
/// the process. They go back when this object is destroyed. Nothing may use them then.
class Buffers {
 public:
  static constexpr u64 most_bytes = u64{128} << 20;  ///< lent and kept, at each place

  /// Waits while too many are lent. A thread that needs buffers at several places must take them in
  /// the order of the places. So no two threads wait for each other. \throws Error(out_of_memory)
  Buffers(Place place, u64 size, u32 count);
  ~Buffers();
  Buffers(Buffers const&) = delete;
  Buffers& operator=(Buffers const&) = delete;
  char* operator[](u64 i) const { return memory_[i].as<char>(); }

 private:
  Place place_;
  u64 size_;
  std::vector<Allocation> memory_;
};

/// A stream of a device, lent in the same way. It must be empty when it goes back.
class LentStream {
 public:
  explicit LentStream(Device& device);
  ~LentStream();
  LentStream(LentStream const&) = delete;
  LentStream& operator=(LentStream const&) = delete;
  Stream& operator*() const { return *stream_; }
  Stream* operator->() const { return stream_.get(); }

 private:
  Device& device_;
  std::unique_ptr<Stream> stream_;
};

/// The device of a place of the machine; null for the host's memory.
Device* device_of(Place const& place);

}  // namespace meshpost::copying
