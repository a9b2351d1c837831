#include <algorithm>
#include <array>
#include <utility>

#include "base/tsan_order.hpp"
#include "net/ofi/ofi.hpp"

namespace meshpost::net::ofi {
namespace {

// An endpoint that only waits does not notice a peer's end; one that sends does.
constexpr auto between_greetings = std::chrono::milliseconds(200);
constexpr u32 greetings_at_once = 32;  // so that they never take all operations

}  // namespace

bool Ofi::read_error() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(queue_.get(), &error, 0) < 0) return false;
  if (receives_->owns(error.op_context)) {
    if (error.err == FI_ECANCELED) return true;
    receives_->post(error.op_context);
    if (error.err == FI_ETRUNC) lose_all("a message was truncated, and its sender is not known");
    return true;
  }
  if (!operations_->owns(error.op_context)) return true;
  u32 const index = operations_->index(error.op_context);
  std::array<char, 256> text{};
  std::string why = library().strerror(error.err);
  if (auto const* const more =
          fi_cq_strerror(queue_.get(), error.prov_errno, error.err_data, text.data(), text.size());
      more && *more && why != more)
    why += std::string(" (") + more + ")";
  auto& operation = (*operations_)[index];
  lose(operation.peer, why);
  if (--operation.under_way == 0) end(index);
  return true;
}

void Ofi::lose(u32 peer, std::string const& why) {
  if (std::exchange(peers_[peer].lost, true)) return;
  losses_.push_back({peer, why});
}

void Ofi::lose_all(std::string const& why) {
  for (u32 peer = 0; peer < peers_.size(); ++peer)
    if (peers_[peer].talked_to) lose(peer, why);
}

bool Ofi::tell_ended(Events& events) {
  if (ended_.empty()) return false;
  auto const ended = std::exchange(ended_, {});
  for (auto const cookie : ended) events.on_done(cookie);
  return true;
}

// After the arrivals from the lost peers.
bool Ofi::tell_losses(Events& events) {
  if (losses_.empty()) return false;
  auto const losses = std::exchange(losses_, {});
  for (auto const& [peer, why] : losses) {
    peers_[peer].over = true;
    // Operations that the provider still uses keep their place until it completes them.
    for (auto& operation : operations_->all()) {
      if (operation.peer != peer || operation.told || operation.step == Operation::Step::free ||
          operation.step == Operation::Step::greeting)
        continue;
      operation.told = true;
      ended_.push_back(operation.cookie);
    }
    events.on_lost(peer, why);
  }
  return true;
}

void Ofi::greet() {
  auto const now = Clock::now();
  if (now < next_greetings_) return;
  next_greetings_ = now + between_greetings;
  auto const count = static_cast<u32>(peers_.size());
  for (u32 i = 0; i < std::min(count, greetings_at_once); ++i)
    greet(next_greeted_ = (next_greeted_ + 1) % count);
}

void Ofi::greet(u32 peer) {
  auto& known = peers_[peer];
  if (!known.talked_to || known.lost) return;
  if (!known.greeting && !operations_->none_free()) {
    u32 const index = operations_->take(Operation::Step::greeting, peer, 0);
    known.greeting = true;
    prepare(index, Preamble::Form::greeting, {}, {});
    known.unstarted = start(index) == Outcome::no_room;
    if (known.unstarted) waiting_.push_back(index);
  } else if (known.unstarted && provider_.listens_on_tcp()) {
    // If nobody listens any more, ofi_rxm tries to connect for ever, and reports nothing.
    if (auto const why = known.probe.ask(known.native); !why.empty()) lose(peer, why);
  }
}

}  // namespace meshpost::net::ofi
