#include "rma/windows/host_endpoint.hpp"

#include <exception>
#include <utility>

#include "base/told.hpp"
#include "meshpost/device/block.hpp"
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

void HostEndpoint::keep(u32 own, Delivery const& count) {
  std::scoped_lock const lock(keeping_);
  kept_.push_back({own, count});
}

// What can't be delivered stays.
template <class Deliver>
void HostEndpoint::deliver_kept(Deliver&& deliver) {
  std::vector<Kept> all;
  {
    std::scoped_lock const lock(keeping_);
    all.swap(kept_);
  }
  std::size_t done = 0;
  try {
    for (; done < all.size(); ++done) deliver(all[done].own, all[done].count);
  } catch (...) {
    std::scoped_lock const lock(keeping_);
    kept_.insert(kept_.begin(), all.begin() + static_cast<std::ptrdiff_t>(done), all.end());
    throw;
  }
}

void HostEndpoint::forget(u32 const* begin, u32 const* end) {
  std::scoped_lock const lock(keeping_);
  std::erase_if(kept_, [&](Kept const& one) {
    return one.count.counter >= begin && one.count.counter < end;
  });
}

// If this process is ahead, the count belongs to the run that it has begun: its ranks, and all
// others, wait at their begin for the asker's, so nobody touches the counters.
void HostEndpoint::raise_for_another(u32 own, Delivery const& count, bool behind) {
  {
    std::scoped_lock const lock(keeping_);
    if (!behind || runs_ == 0) {
      kept_.push_back({own, count});
      return;
    }
  }
  raise_between_runs(own, count);
}

void HostEndpoint::raise(u32 own, Delivery const& count, bool lasting) {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0 && lasting) raise_now(own, count);
  else keep(own, count);
}

void HostEndpoint::raise_now(u32 own, Delivery const& count) {
  if (runs_with_commands_ == 0 || layout_.devices[own]->in_host_memory())
    raise_between_runs(own, count);
  else if (!proxy_) own_[own]->deliver(count);
  else if (!proxy_->deliver(own, count)) keep(own, count);  // the run is over
}

void HostEndpoint::raise_between_runs(u32 own, Delivery const& count) const {
  auto& device = *layout_.devices[own];
  if (device.in_host_memory()) {
    others_are_told();
    make_access(device)->deliver(count);
    return;
  }
  std::scoped_lock const lock(adding_);
  u32 now = 0;
  device.read(&now, count.counter, Bytes{sizeof now});
  now += count.value;
  device.write(count.sender_word, &count.sender, Bytes{sizeof count.sender});
  device.write(count.counter, &now, Bytes{sizeof now});
}

bool HostEndpoint::run_begins(bool with_host, bool disturbed) {
  std::scoped_lock const lock(mutex_);
  bool commands = with_host;
  {
    // What comes later finds a run under way.
    std::scoped_lock const of_kept(keeping_);
    commands |= disturbed && !kept_.empty();
    if (!commands) ++runs_;
  }
  try {
    if (commands && !proxy_) begin_commands();
    if (commands) ++runs_with_commands_;
    deliver_kept([&](u32 own, Delivery const& count) {
      if (disturbed) raise_now(own, count);
      else raise_between_runs(own, count);
    });
  } catch (...) {
    if (commands) runs_with_commands_ = 0;
    else --runs_;
    throw;
  }
  return commands;
}

void HostEndpoint::begin_commands() {
  if (own_.empty()) {
    std::vector<std::unique_ptr<Access>> made;
    made.reserve(layout_.devices.size());
    for (auto const& device : layout_.devices) made.push_back(make_access(*device));
    own_ = std::move(made);
  }
  for (auto const& access : own_) access->begin();
}

void HostEndpoint::run_ends(bool commands, bool well) {
  std::scoped_lock const lock(mutex_);
  if (commands) --runs_with_commands_;
  else --runs_;
  if (!commands || proxy_) return;
  std::exception_ptr failed;  // of one device: the others are told all the same
  for (auto const& access : own_) try {
      if (well) access->end();  // commands that no rank has carried out belong to the next run
      else access->drop();
    } catch (...) {
      failed = std::current_exception();
    }
  if (failed) std::rethrow_exception(failed);
}

void HostEndpoint::poll() {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0) deliver_kept([this](u32 own, Delivery const& count) { raise_now(own, count); });
  for (auto const& access : own_) access->poll();
}

}  // namespace meshpost::detail
