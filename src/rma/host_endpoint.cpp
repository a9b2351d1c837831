#include "rma/host_endpoint.hpp"

#include <utility>

#include "base/told.hpp"
#include "meshpost/device/block.hpp"
#include "rma/proxy.hpp"

namespace meshpost::detail {

std::vector<HostEndpoint::Kept> HostEndpoint::take_kept() {
  std::scoped_lock const lock(keeping_);
  return std::exchange(kept_, {});
}

void HostEndpoint::raise_for_another(u32 own, Delivery const& count) {
  if (layout_.devices[own]->in_host_memory() && runs_ == 0) return raise_at_rest(own, count);
  std::scoped_lock const lock(keeping_);
  kept_.push_back({own, count});
}

void HostEndpoint::raise(u32 own, Delivery const& count) {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0) return raise_now(own, count);
  std::scoped_lock const of_kept(keeping_);
  kept_.push_back({own, count});
}

void HostEndpoint::raise_now(u32 own, Delivery const& count) {
  if (runs_with_host_ == 0 || layout_.devices[own]->in_host_memory()) raise_at_rest(own, count);
  else if (proxy_) proxy_->deliver(own, count);
  else own_[own]->deliver(count);
}

void HostEndpoint::raise_at_rest(u32 own, Delivery const& count) const {
  auto& device = *layout_.devices[own];
  if (device.in_host_memory()) {
    others_are_told();
    make_access(device)->deliver(count);
    return;
  }
  u32 now = 0;
  device.read(&now, count.counter, Bytes{sizeof now});
  now += count.value;
  device.write(count.sender_word, &count.sender, Bytes{sizeof count.sender});
  device.write(count.counter, &now, Bytes{sizeof now});
}

void HostEndpoint::run_begins(bool with_host) {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0 && runs_with_host_ == 0)
    for (auto const& [own, count] : take_kept()) raise_at_rest(own, count);
  if (with_host && !proxy_) {
    if (own_.empty()) {
      std::vector<std::unique_ptr<Access>> made;
      made.reserve(layout_.devices.size());
      for (auto const& device : layout_.devices) made.push_back(make_access(*device));
      own_ = std::move(made);
    }
    for (auto const& access : own_) access->begin();
  }
  if (with_host) ++runs_with_host_;
  else ++runs_;
}

void HostEndpoint::run_ends(bool with_host, bool well) {
  std::scoped_lock const lock(mutex_);
  if (with_host) --runs_with_host_;
  else --runs_;
  if (!with_host || proxy_) return;
  for (auto const& access : own_) {
    if (well) access->end();  // what no rank has opened belongs to the next run
    else access->drop();
  }
}

void HostEndpoint::poll() {
  std::scoped_lock const lock(mutex_);
  if (runs_ == 0)
    for (auto const& [own, count] : take_kept()) raise_now(own, count);
  for (auto const& access : own_) access->poll();
}

}  // namespace meshpost::detail
