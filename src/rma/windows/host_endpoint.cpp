#include "rma/windows/host_endpoint.hpp"

#include <exception>
#include <utility>

#include "base/tsan_order.hpp"
#include "meshpost/device/block.hpp"
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

void HostEndpoint::keep(u32 own, via::Signal const& count) {
  std::scoped_lock const lock(keeping_);
  kept_.push_back({own, count});
}

// Counts that can't be delivered stay.
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
  std::erase_if(
      kept_, [&](Kept const& one) { return one.count.word() >= begin && one.count.word() < end; });
}

// Ranks out of the sender's reach in host memory get it at once while their host watches a run with
// it. The sender's host may have ended the run already, and the count is for the next one. But
// there is a proxy, so it has heard that all ranks have ended: these have swept their counters. If
// hosts then clear counters, after a failure or since something was left, the sender's host waits
// for this one, which watches no more (watch_ends), and later counts are kept. So the count stays.
//
// If this process is ahead, the count belongs to the run that it has begun. Its ranks, and all
// others, wait at their begin for the sender's ranks. So nobody touches the counters.
void HostEndpoint::raise_for_another(u32 own, via::Signal const& count, bool behind) {
  if (proxy_ && layout_.devices[own]->in_host_memory()) {
    std::unique_lock const lock(mutex_, std::try_to_lock);
    if (lock && runs_ == 0 && watched_) return raise_between_runs(own, count);
  }
  {
    std::scoped_lock const lock(keeping_);
    if (!behind || runs_ == 0) {
      kept_.push_back({own, count});
      return;
    }
  }
  raise_between_runs(own, count);
}

void HostEndpoint::raise(u32 own, via::Signal const& count, bool lasting) {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0 && lasting) raise_now(own, count);
  else keep(own, count);
}

void HostEndpoint::raise_now(u32 own, via::Signal const& count) {
  if (runs_with_commands_ == 0 || layout_.devices[own]->in_host_memory())
    raise_between_runs(own, count);
  else if (!proxy_) own_[own]->deliver({{.signal = count}});
  else if (!proxy_->raise(own, count)) keep(own, count);  // the run is over
}

void HostEndpoint::raise_between_runs(u32 own, via::Signal const& count) const {
  auto& device = *layout_.devices[own];
  if (device.in_host_memory()) {
    others_are_told();
    make_access(device)->deliver({{.signal = count}});
    return;
  }
  std::scoped_lock const lock(adding_);
  device.raise(count.word(), count.value(), count.distance() != 0 ? count.origin_word() : nullptr,
               count.origin);
}

bool HostEndpoint::run_begins(bool with_host, bool disturbed) {
  std::scoped_lock const lock(mutex_);
  bool commands = with_host;
  {
    // Later counts find a run in progress.
    std::scoped_lock const of_kept(keeping_);
    commands |= disturbed && !kept_.empty();
    if (!commands) ++runs_;
  }
  try {
    if (commands && !proxy_) begin_commands();
    if (commands) ++runs_with_commands_;
    deliver_kept([&](u32 own, via::Signal const& count) {
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
  std::exception_ptr failed;  // of one device: the others are still ended
  for (auto const& access : own_) try {
      if (well) access->end();  // the next run gets what no rank has taken
      else access->drop();
    } catch (...) {
      failed = std::current_exception();
    }
  if (failed) std::rethrow_exception(failed);
}

void HostEndpoint::watch_ends() {
  std::scoped_lock const lock(mutex_);
  watched_ = false;
}

void HostEndpoint::poll() {
  std::scoped_lock const lock(mutex_);
  watched_ = true;
  if (runs_ == 0)
    deliver_kept([this](u32 own, via::Signal const& count) { raise_now(own, count); });
  for (auto const& access : own_) access->poll();
}

}  // namespace meshpost::detail
