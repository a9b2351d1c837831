#include "pipeline/lane.hpp"

#include <cstring>
#include <utility>

#include "meshpost/device/backend.hpp"

namespace meshpost {

bool has_own_streams(Device& device) { return device.make_stream()->native() != nullptr; }

std::shared_ptr<Device> mover_between(Level const& from, Level const& to) {
  for (auto const* const level : {&to, &from})
    if (level->memory == MemoryKind::device && has_own_streams(*level->device))
      return level->device;
  return nullptr;
}

Lane::Lane(std::shared_ptr<Device> const& device, Failure& failure)
    : host_(!device || !has_own_streams(*device)),
      failure_(&failure),
      stream_(device ? device->make_stream() : backend("cpu").open(0)->make_stream()) {}

void Lane::hold(std::shared_ptr<Event> event, std::string const& where) {
  if (!host_) {
    stream_->wait(std::move(event));
    return;
  }
  stream_->call([this, event = std::move(event), where] {
    try {
      event->wait();
    } catch (...) {
      failure_->note(where);
    }
  });
}

void Lane::on_thread(std::string where, std::function<void()> work) {
  stream_->call([this, where = std::move(where), work = std::move(work)] {
    if (failure_->any()) return;
    try {
      work();
    } catch (...) {
      failure_->note(where);
    }
  });
}

void Lane::stamp(double* where, std::chrono::steady_clock::time_point start) {
  stream_->call([where, start] {
    *where = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
}

void Lane::copy(std::vector<Segment> segments, std::string const& where) {
  if (!host_) {
    for (auto const& one : segments) stream_->copy(one.target, one.source, one.size);
    return;
  }
  on_thread(where, [segments = std::move(segments)] {
    for (auto const& one : segments)
      if (one.size != 0) std::memmove(one.target, one.source, one.size);
  });
}

std::shared_ptr<Event> Lane::mark() { return stream_->record(); }

void Lane::drain() noexcept {
  try {
    stream_->synchronize();
  } catch (...) {
    failure_->note("end a pipeline");
  }
}

}  // namespace meshpost
