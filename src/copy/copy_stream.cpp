#include "copy/copy_stream.hpp"

#include <map>
#include <shared_mutex>
#include <tuple>

namespace meshpost::copying {

// The event is recorded once, under the lane's mutex, when it is needed. `event_` is written once,
// before `recorded_`. A thread that has read `recorded_` (acquire) may read it.
class CopyStream::Shared : public Copy::State,
                           public std::enable_shared_from_this<CopyStream::Shared> {
 public:
  explicit Shared(CopyStream& copy_stream) : owner_(copy_stream) {}
  void wait() override {
    if (over_.load(std::memory_order_acquire)) return;
    event()->wait();
    over_.store(true, std::memory_order_release);
  }
  bool done() override {
    if (!over_.load(std::memory_order_acquire) && event()->done())
      over_.store(true, std::memory_order_release);
    return over_.load(std::memory_order_acquire);
  }
  std::shared_ptr<Event> event() override {
    if (!recorded_.load(std::memory_order_acquire)) {
      std::scoped_lock const lock(owner_.mutex_);
      record();
    }
    return event_;
  }
  void record() {  // under the lane's mutex
    if (recorded_.load(std::memory_order_relaxed)) return;
    event_ = owner_.stream_->record();
    recorded_.store(true, std::memory_order_release);
    if (owner_.open_.get() == this) owner_.open_.reset();
  }

 private:
  CopyStream& owner_;
  std::shared_ptr<Event> event_;
  std::atomic<bool> recorded_{false}, over_{false};
};

StatePtr CopyStream::copy(void* target, void const* source, u64 size) {
  std::scoped_lock const lock(mutex_);
  stream_->copy(target, source, Bytes{size});
  if (size >= large) return std::make_shared<StreamState>(stream_->record());
  if (!open_) open_ = std::make_shared<Shared>(*this);
  return open_;
}

StatePtr CopyStream::copy(PitchedCopy const& rows) {
  std::scoped_lock const lock(mutex_);
  stream_->copy(rows);
  return std::make_shared<StreamState>(stream_->record());
}

CopyStream& copy_stream(Device& device, Device const* other, bool outward, Traffic traffic) {
  using Key = std::tuple<Device const*, Device const*, bool, Traffic>;
  static std::shared_mutex mutex;
  static auto* const streams = new std::map<Key, std::unique_ptr<CopyStream>>;
  Key const key{&device, other, outward, traffic};
  {
    std::shared_lock const lock(mutex);
    if (auto const found = streams->find(key); found != streams->end()) return *found->second;
  }
  std::unique_lock const lock(mutex);
  if (auto const found = streams->find(key); found != streams->end()) return *found->second;
  auto made = std::make_unique<CopyStream>(device);  // first: the device may have no stream to give
  return *streams->emplace(key, std::move(made)).first->second;
}

}  // namespace meshpost::copying
