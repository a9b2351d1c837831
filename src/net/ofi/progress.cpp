#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/told.hpp"
#include "net/ofi/ofi.hpp"

namespace meshpost::net::ofi {
namespace {

// An endpoint that only waits hears nothing of a peer's end; one that sends does.
constexpr auto between_greetings = std::chrono::milliseconds(200);
constexpr u32 greetings_at_once = 32;  // so that they never take all operations

template <class Key>
bool find(std::unordered_map<Key, u32> const& all, Key key, u32& peer) {
  auto const found = all.find(key);
  if (found != all.end()) peer = found->second;
  return found != all.end();
}

}  // namespace

bool Ofi::poll(Events& events) {
  if (peers_.empty()) return false;  // arrivals could not be attributed
  bool happened = tell_ended(events);
  happened |= read_queue(events);
  receives_->retry();
  auto const waiting = waiting_.empty() ? std::vector<u32>() : std::exchange(waiting_, {});
  for (auto const index : waiting) {
    if (peers_[(*operations_)[index].peer].lost) end(index);
    else go_on(index);
  }
  greet();
  happened |= tell_ended(events);
  return tell_losses(events) || happened;
}

bool Ofi::read_queue(Events& events) {
  constexpr size_t at_once = 32;
  std::array<fi_cq_data_entry, at_once> entries;
  std::array<fi_addr_t, at_once> sources{};
  bool happened = false;
  for (int round = 0; round < 8; ++round) {
    auto const count = provider_.telling == Telling::source
                           ? fi_cq_readfrom(queue_.get(), entries.data(), at_once, sources.data())
                           : fi_cq_read(queue_.get(), entries.data(), at_once);
    if (count == -FI_EAGAIN || count == 0) break;
    happened = true;
    if (count == -FI_EAVAIL) {
      if (!read_error()) break;
      continue;
    }
    check(count, "fi_cq_read");
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) arrived(events, entries[i], sources[i]);
    if (static_cast<size_t>(count) < at_once) break;  // asking again costs a look at each socket
  }
  return happened;
}

bool Ofi::read_error() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(queue_.get(), &error, 0) < 0) return false;
  if (receives_->owns(error.op_context)) {
    if (error.err == FI_ECANCELED) return true;
    receives_->post(error.op_context);
    // All of them, as the sender can't be told. An error entry has no source (fi_cq_readfrom gives
    // that of good entries alone, and so does not help with FI_SOURCE either). The number in the
    // preamble would be in the buffer, but libfabric does not promise the buffer's bytes after an
    // error. The cause is a size that the network changed, or a provider's fault: other bytes may
    // be wrong too. So a number found there could make the wrong process lost, and leave a message
    // of the right one missing.
    if (error.err == FI_ETRUNC)
      lose_all("a message came without its end, and libfabric does not say from which process");
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

void Ofi::arrived(Events& events, fi_cq_data_entry const& entry, fi_addr_t source) {
  heard_of_others();
  if (operations_->owns(entry.op_context)) {
    written(operations_->index(entry.op_context));
  } else if (entry.flags & FI_RECV) {
    if (!receives_->owns(entry.op_context)) return;
    if (entry.len > 0)
      received(events, receives_->bytes(entry.op_context, entry.buf, entry.len), entry.len);
    if (!provider_.multi_receive || entry.flags & FI_MULTI_RECV) receives_->post(entry.op_context);
  } else if (entry.flags & FI_MULTI_RECV) {
    receives_->post(entry.op_context);
  } else if (entry.flags & FI_REMOTE_CQ_DATA) {
    u32 peer = 0;
    bool const known = provider_.telling == Telling::source
                           ? find(by_address_, source, peer)
                           : find(by_number_, static_cast<u32>(entry.data >> 32), peer);
    if (known && !peers_[peer].over) events.on_data(peer, static_cast<u32>(entry.data));
  }
}

void Ofi::received(Events& events, std::span<char const> bytes, u64 size) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble) return;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  u32 peer = 0;
  if (!find(by_number_, preamble.number, peer) || peers_[peer].over) return;
  if (size != bytes.size())
    return lose(peer, fmt::format("process {} sent a message of {} bytes, where {} fit: the size "
                                  "was changed on its way",
                                  peer, size, bytes.size()));
  if (preamble.form == Preamble::Form::message)
    events.on_message(peer, bytes.subspan(sizeof preamble));
  else if (preamble.form == Preamble::Form::data) events.on_data(peer, preamble.data);
}

// An operation has ended well: it goes on, or is over.
void Ofi::written(u32 index) {
  auto& operation = (*operations_)[index];
  --operation.under_way;
  bool const tell = operation.step == Operation::Step::tell;
  bool const more = tell || (operation.step == Operation::Step::write && !operation.source.empty());
  bool const announce = operation.step == Operation::Step::unannounced;
  if ((!more && !announce) || peers_[operation.peer].lost)
    return operation.under_way == 0 ? end(index) : void();
  if (announce) {
    operation.step = Operation::Step::announcement;
    prepare(index, Preamble::Form::data, {}, {});
  }
  go_on(index);
}

void Ofi::go_on(u32 index) {
  auto const& operation = (*operations_)[index];
  auto& peer = peers_[operation.peer];
  bool const greeting = operation.step == Operation::Step::greeting;
  bool const no_room = start(index) == Outcome::no_room;
  if (no_room) waiting_.push_back(index);
  if (greeting) peer.unstarted = no_room;
}

void Ofi::end(u32 index) {
  auto const& operation = (*operations_)[index];
  if (operation.step == Operation::Step::greeting) peers_[operation.peer].greeting = false;
  else if (!operation.told) ended_.push_back(operation.cookie);
  operations_->release(index);
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

// After what had arrived from the lost peers.
bool Ofi::tell_losses(Events& events) {
  if (losses_.empty()) return false;
  auto const losses = std::exchange(losses_, {});
  for (auto const& [peer, why] : losses) {
    peers_[peer].over = true;
    // What the provider still holds keeps its place until it lets go of it.
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
    // Where nobody listens any more, ofi_rxm tries to connect anew without end, and says nothing.
    if (auto const why = known.probe.ask(known.native); !why.empty()) lose(peer, why);
  }
}

}  // namespace meshpost::net::ofi
