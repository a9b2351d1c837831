#include "pipeline/leg_executor.hpp"

namespace meshpost::pipelining {

std::shared_ptr<Device> mover_between(Level const& from, Level const& to) {
  // A stream can't wait for the threads that copy pageable memory.
  if (from.memory == MemoryKind::pageable || to.memory == MemoryKind::pageable) return nullptr;
  for (auto const* const level : {&to, &from})
    if (level->memory == MemoryKind::device && !level->device->make_stream()->on_host())
      return level->device;
  return nullptr;
}

Ticket LegExecutor::copy(std::vector<Segment> const& segments) {
  BatchOptions options{Overlap::refuse, {}};
  if (ahead_) options.streams.push_back(stream_.get());
  auto copy = copy_batch(segments, options);
  if (ahead_) return {stream_->record(), std::make_shared<Copy>(std::move(copy))};
  copy.wait();
  return {};
}

Ticket LegExecutor::end() {
  if (ahead_) return {stream_->record(), nullptr};
  if (stream_) stream_->synchronize();
  return {};
}

void LegExecutor::stamp(double* where, std::chrono::steady_clock::time_point start) {
  auto const write = [where, start] {
    *where = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  ahead_ ? stream_->call(write) : write();
}

}  // namespace meshpost::pipelining
