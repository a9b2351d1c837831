// Public calls that wait for a device. Observers of the host see them.
#include "base/host_calls.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost {

void Stream::synchronize(std::source_location where) {
  HostCall call(HostCallKind::wait, "Stream::synchronize", where);
  call.about([] { return "a stream"; });
  do_synchronize();
}

void Stream::stamp(u64* word) {
  call([word] { *word = host_clock_ns(); });
}

void Device::read(void* host, void const* device, Bytes size, std::source_location where) {
  HostCall call(HostCallKind::read, "Device::read", where);
  call.about([this] { return "a copy from " + name(); });
  do_read(host, device, size);
}

void Device::write(void* device, void const* host, Bytes size, std::source_location where) {
  HostCall call(HostCallKind::write, "Device::write", where);
  call.about([this] { return "a copy to " + name(); });
  do_write(device, host, size);
}

void Device::fill(void* target, u8 value, Bytes size, std::source_location where) {
  HostCall call(HostCallKind::write, "Device::fill", where);
  call.about([this] { return "a fill on " + name(); });
  do_fill(target, value, size);
}

}  // namespace meshpost
