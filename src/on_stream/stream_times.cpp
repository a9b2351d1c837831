#include "on_stream/stream_times.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::detail {

StreamTimes::StreamTimes(Device& device, u32 capacity)
    : capacity_(std::max(1u, capacity)),
      words_(device.allocate(Bytes{u64{2} * capacity_ * sizeof(u64)}, MemoryKind::pinned)) {
  std::memset(words_.data(), 0, words_.size());
  // Loads the kernel that stores: later another stream may wait.
  auto const stream = device.make_stream();
  stream->stamp(words_.as<u64>());
  stream->synchronize();
}

u64* StreamTimes::begin(Stream& stream, std::string_view name, char const* category, u64 bytes) {
  if (stream.captures()) return nullptr;
  if (spans_.size() == capacity_) {
    ++lost_;
    return nullptr;
  }
  auto* const word = words_.as<u64>() + 2 * spans_.size();
  spans_.push_back({std::string(name), category, 0, 0, bytes});
  stream.stamp(word);
  return word + 1;
}

void StreamTimes::store(Stream& stream, u64* word) noexcept {
  try {
    stream.stamp(word);
  } catch (std::exception const& error) {
    warn(error.what());
  }
}

trace::StreamRow StreamTimes::take(std::string device, std::string name, i64 offset) {
  trace::StreamRow row{std::move(device), std::move(name), {}, lost_};
  auto const* word = words_.as<u64>();
  for (auto& span : spans_) {
    u64 const begin = word[0], end = word[1];  // the stream is over
    word += 2;
    if (begin == 0 || end == 0) continue;
    span.begin = begin + static_cast<u64>(offset), span.end = end + static_cast<u64>(offset);
    row.spans.push_back(std::move(span));
  }
  spans_.clear();
  lost_ = 0;
  return row;
}

}  // namespace meshpost::detail
