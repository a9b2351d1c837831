#include "device/cuda/launch_resources.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#include "base/cores.hpp"
#include "device/cuda/stream.hpp"

namespace meshpost::cuda {

LaunchOrder& LaunchOrder::instance() {
  static auto* const order = new LaunchOrder;
  return *order;
}

void LaunchOrder::put_last(int device, Stream& stream) {
  auto*& last = last_[device];
  if (last && last != &stream) stream.wait(last->record());
  last = &stream;
}

void LaunchOrder::forget(Stream const& stream) {
  auto const lock = take();
  std::erase_if(last_, [&](auto const& entry) { return entry.second == &stream; });
}

CudaLaunchResources::~CudaLaunchResources() {
  for (auto const& [device, stream] : streams_) LaunchOrder::instance().forget(*stream);
}

Stream& CudaLaunchResources::stream(int device) {
  auto& stream = streams_[device];
  if (!stream) stream = make_stream(device);
  return *stream;
}

void CudaLaunchResources::quiesce() {
  std::exception_ptr broken;  // the others are waited for nevertheless
  for (auto const& [device, stream] : streams_) try {
      stream->synchronize();
    } catch (...) {
      if (!broken) broken = std::current_exception();
    }
  if (broken) std::rethrow_exception(broken);
}

void CudaLaunchResources::launch_all(u32 count, u32 neighbours,
                                     std::function<void(u32)> const& launch) {
  static u32 const cores = usable_cores();
  if (count > 1 && cores >= 2 * count * neighbours) launchers_.grow(count - 1);
  launchers_.each(count, launch);
}

void CudaLaunchResources::refuse_blocking_launches(std::string const& kernel) {
  if (asked_) return;
  char const* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::string_view(blocking) != "0" && std::string_view(blocking) != "")
    throw Error(
        Kind::bad_environment, fmt::format("launch {}", kernel),
        fmt::format(
            "CUDA_LAUNCH_BLOCKING={} makes each launch wait for its kernel, which waits for the "
            "kernels of the other devices",
            blocking),
        "unset CUDA_LAUNCH_BLOCKING");
  asked_ = true;
}

}  // namespace meshpost::cuda
