#include "meshpost/compat/coaccel.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "compat/coaccel_error.hpp"
#include "compat/coaccel_group.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/pipeline/group.hpp"

// Figures 2 and 3: devices and groups of threads. The pipeline is in coaccel_pipeline.cpp.

using namespace meshpost;
using coaccel::DeviceCall;
using coaccel::guarded;
using coaccel::refuse;

namespace {

thread_local std::string last_error;
thread_local bool failed = false;

std::vector<Segment> segments_of(int count, coaccel_address const* dst, coaccel_address const* src,
                                 size_t const* size) {
  return coaccel::segments_of("coaccel_memcpy_start", count, dst, src, size);
}

}  // namespace

namespace meshpost::coaccel {

void keep(char const* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();  // no memory for the text: the failure is still reported
  }
  failed = true;
}

void warn(char const* operation, char const* text) noexcept {
  try {
    meshpost::warn(std::string(operation) + ": " + text);
  } catch (...) {
    return;  // no memory for it: coaccel_last_error() has the text
  }
}

void refuse(char const* operation, std::string cause, char const* remedy) {
  throw Error(Kind::bad_argument, operation, std::move(cause), remedy);
}

std::vector<Segment> segments_of(char const* operation, int count, coaccel_address const* dst,
                                 coaccel_address const* src, size_t const* size) {
  if (count < 0) refuse(operation, fmt::format("{} pieces", count), "give 0 or more");
  if (count != 0 && (!dst || !src || !size)) refuse(operation, "a list is null", "give all lists");
  std::vector<Segment> segments;
  segments.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) segments.push_back({dst[i], src[i], Bytes{size[i]}});
  return segments;
}

}  // namespace meshpost::coaccel

struct coaccel_multi_s {
  coaccel_device_group group = nullptr;
  void* deinit_data = nullptr;  // written before the threads are told to end
  std::unique_ptr<DeviceGroup> threads{};
  std::atomic<bool> ending{false};  // a call ends the threads, and frees this
};

namespace {

DeviceGroup::Work work_of(coaccel_device_group group, coaccel_multi_func_t function,
                          void* const* data) {
  if (!function) return {};
  return [group, function, data](Member const& member) {
    auto const device = member.index % group->devices.size();
    int const code = function(group, group->devices[device], static_cast<int>(device),
                              static_cast<int>(member.index), *data);
    if (code != 0)
      throw Error(Kind::kernel_failed, fmt::format("thread {}", member.index),
                  fmt::format("its function returned {}", code), "see the function");
  };
}

}  // namespace

extern "C" {

const char* coaccel_last_error(void) {
  return std::exchange(failed, false) ? last_error.c_str() : nullptr;
}

coaccel_device coaccel_device_open(const char* name) {
  return guarded("coaccel_device_open", [&]() -> coaccel_device {
    if (!name) refuse("coaccel_device_open", "the name is null", "use pageable, pinned, cuda:0");
    std::string const wanted = name;
    auto device = std::make_unique<coaccel_device_s>();
    if (wanted.starts_with("mpi:")) {
      device->far = coaccel::open_far(wanted);
      device->level = {open_devices("").front(), MemoryKind::pageable};
    } else if (wanted == "pageable" || wanted == "pinned") {
      // Pinned memory is pinned for the existing GPUs. Without any it is ordinary host memory.
      device->level = {open_devices("").front(),
                       wanted == "pinned" ? MemoryKind::pinned : MemoryKind::pageable};
    } else {
      // "cpu:1" is a device here. In the library's lists it would be a number of devices.
      auto const colon = wanted.find(':');
      auto const index =
          colon == wanted.npos ? std::nullopt : parse_number(wanted.substr(colon + 1));
      if (!index || *index > 1u << 16)
        refuse("coaccel_device_open", fmt::format("there is no device '{}'", wanted),
               "use pageable, pinned, cuda:0, cpu:1, mpi:RANK, mpi:RANK:ID");
      auto& kind = backend(wanted.substr(0, colon));
      if (*index >= kind.count())
        refuse(
            "coaccel_device_open",
            fmt::format("there is no '{}'; this process has {} such devices", wanted, kind.count()),
            "devices count from 0");
      device->level = {kind.open(static_cast<u32>(*index)), MemoryKind::device};
    }
    return device.release();
  });
}

void coaccel_device_close(coaccel_device device) { delete device; }

coaccel_address coaccel_device_malloc(coaccel_device device, size_t size) {
  return guarded("coaccel_device_malloc", [&]() -> coaccel_address {
    if (!device) refuse("coaccel_device_malloc", "the device is null", "open one");
    DeviceCall const call(*device);
    auto memory = device->far ? coaccel::far_addresses(device->far, Bytes{size})
                              : device->level.device->allocate(Bytes{size}, device->level.memory);
    void* const address = memory.data();
    std::scoped_lock const lock(device->mutex);
    device->allocations[address] = std::move(memory);
    return address;
  });
}

void coaccel_device_free(coaccel_device device, coaccel_address address) {
  guarded("coaccel_device_free", [&] {
    if (!device) refuse("coaccel_device_free", "the device is null", "open one");
    DeviceCall const call(*device);
    std::scoped_lock const lock(device->mutex);
    if (address && device->allocations.erase(address) == 0)
      refuse("coaccel_device_free", fmt::format("{} was not allocated there", address),
             "free what coaccel_device_malloc returned, once");
  });
}

void coaccel_device_lock(coaccel_device device) {
  guarded("coaccel_device_lock", [&] {
    if (!device) refuse("coaccel_device_lock", "the device is null", "open one");
    std::unique_lock lock(device->mutex);
    // A thread that has the lock gets it again. For others, calls of other threads must be over,
    // too.
    device->changed.wait(
        lock, [&] { return device->mine_or_free() && (device->locks > 0 || device->calls == 0); });
    device->owner = std::this_thread::get_id();
    ++device->locks;
  });
}

void coaccel_device_unlock(coaccel_device device) {
  guarded("coaccel_device_unlock", [&] {
    if (!device) refuse("coaccel_device_unlock", "the device is null", "open one");
    std::scoped_lock const lock(device->mutex);
    if (device->locks == 0 || device->owner != std::this_thread::get_id())
      refuse("coaccel_device_unlock", "this thread has not locked it", "lock it first");
    if (--device->locks == 0) device->changed.notify_all();
  });
}

void* coaccel_memcpy_start(coaccel_device device, int count, coaccel_address* dst,
                           coaccel_address* src, size_t* size, int /*dir*/) {
  return guarded("coaccel_memcpy_start", [&]() -> void* {
    if (!device) refuse("coaccel_memcpy_start", "the device is null", "open one");
    DeviceCall const call(*device);
    return new coaccel::Pieces("coaccel_memcpy_start", segments_of(count, dst, src, size));
  });
}

void coaccel_memcpy_finish(coaccel_device /*device*/, void* desc) {
  guarded("coaccel_memcpy_finish", [&] {
    std::unique_ptr<coaccel::Pieces> const pieces(static_cast<coaccel::Pieces*>(desc));
    if (pieces) pieces->wait();
  });
}

coaccel_device_group coaccel_group_init(int count, const coaccel_device* devices, int compute) {
  return guarded("coaccel_group_init", [&]() -> coaccel_device_group {
    if (count <= 0 || !devices)
      refuse("coaccel_group_init", "it has no devices", "give 1 device or more");
    if (compute < -1 || compute >= count)
      refuse("coaccel_group_init", fmt::format("device {} of {} computes", compute, count),
             "devices count from 0; -1 is none");
    for (int i = 0; i < count; ++i)
      if (!devices[i]) refuse("coaccel_group_init", fmt::format("device {} is null", i), "open it");
    return new coaccel_device_group_s{{devices, devices + count}, compute};
  });
}

void coaccel_group_done(coaccel_device_group group) { delete group; }

coaccel_multi coaccel_multi_init(coaccel_device_group group, int nthreads,
                                 coaccel_multi_func_t thread_init,
                                 coaccel_multi_func_t thread_deinit, void* data) {
  return guarded("coaccel_multi_init", [&]() -> coaccel_multi {
    if (!group) refuse("coaccel_multi_init", "the group is null", "make one");
    if (nthreads < 0 || nthreads > 4096)
      refuse("coaccel_multi_init", fmt::format("{} threads", nthreads), "ask for 0 to 4096");
    std::unique_ptr<coaccel_multi_s> multi(new coaccel_multi_s{group, data});
    std::vector<std::shared_ptr<Device>> devices;
    auto const threads = nthreads == 0 ? group->devices.size() : static_cast<std::size_t>(nthreads);
    devices.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i)
      devices.push_back(group->devices[i % group->devices.size()]->level.device);
    multi->threads =
        std::make_unique<DeviceGroup>(std::move(devices), work_of(group, thread_init, &data),
                                      work_of(group, thread_deinit, &multi->deinit_data));
    return multi.release();
  });
}

void coaccel_multi_step_all(coaccel_multi desc, coaccel_multi_func_t process, void* data) {
  guarded("coaccel_multi_step_all", [&] {
    if (!desc) refuse("coaccel_multi_step_all", "the threads are null", "make some");
    desc->threads->step_all(work_of(desc->group, process, &data));
  });
}

void coaccel_multi_finalize(coaccel_multi desc, void* data) {
  guarded("coaccel_multi_finalize", [&] {
    if (!desc) return;
    auto& threads = *desc->threads;
    if (threads.inside()) return threads.finalize();  // this refuses it
    // While the threads end, their functions may call this again, also on threads of another multi.
    if (desc->ending.exchange(true))
      refuse("coaccel_multi_finalize", "another call is ending these threads", "call it once");
    desc->deinit_data = data;
    try {
      threads.finalize();
    } catch (...) {
      if (threads.ended()) delete desc;
      else desc->ending = false;  // it was refused: the threads continue
      throw;
    }
    delete desc;
  });
}

}  // extern "C"
