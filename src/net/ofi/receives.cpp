#include "net/ofi/receives.hpp"

#include <algorithm>

namespace meshpost::net::ofi {
namespace {

constexpr u64 ring_size = 128;
constexpr u64 multi_count = 4, multi_size = u64{1} << 20;

}  // namespace

Receives::Receives(fid_ep* endpoint, Memory& memory, bool multi, u64 most)
    : endpoint_(endpoint),
      multi_(multi),
      most_(most),
      size_(multi ? multi_size : most),
      contexts_(multi ? multi_count : ring_size) {
  memory_ = std::make_unique_for_overwrite<char[]>(size_ * contexts_.size());
  descriptor_ = memory.own(memory_.get(), size_ * contexts_.size());
  if (multi_) {
    size_t least = most;
    check(fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
          "fi_setopt(FI_OPT_MIN_MULTI_RECV)");
  }
  for (auto const& context : contexts_) post(&context);
}

bool Receives::owns(void const* context) const {
  auto const* const one = static_cast<fi_context2 const*>(context);
  return one >= contexts_.data() && one < contexts_.data() + contexts_.size();
}

std::span<char const> Receives::bytes(void const* context, void const* reported, u64 size) const {
  auto const buffer = static_cast<u64>(static_cast<fi_context2 const*>(context) - contexts_.data());
  char const* const begin = memory_.get() + size_ * buffer;
  char const* const at = multi_ ? static_cast<char const*>(reported) : begin;
  if (at < begin || at >= begin + size_) return {};
  return {at, std::min({size, most_, static_cast<u64>(begin + size_ - at)})};
}

void Receives::post(void const* context) {
  auto const buffer = static_cast<u64>(static_cast<fi_context2 const*>(context) - contexts_.data());
  if (!try_post(buffer)) waiting_.push_back(buffer);
}

void Receives::retry() {
  while (!waiting_.empty() && try_post(waiting_.back())) waiting_.pop_back();
}

bool Receives::try_post(u64 buffer) {
  iovec const vector{memory_.get() + size_ * buffer, size_};
  fi_msg message{};
  message.msg_iov = &vector;
  message.iov_count = 1;
  message.desc = &descriptor_;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &contexts_[buffer];
  auto const result = fi_recvmsg(endpoint_, &message, multi_ ? FI_MULTI_RECV : 0);
  if (result == -FI_EAGAIN) return false;
  check(result, "fi_recvmsg");
  return true;
}

}  // namespace meshpost::net::ofi
