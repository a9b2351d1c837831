#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/tsan_order.hpp"
#include "net/misuse.hpp"
#include "net/ofi/ofi.hpp"

// Messages and writes: how they start, and what follows.

namespace meshpost::net::ofi {
namespace {

// Writes of up to this size arrive whole, together with their header. So they may carry data where
// larger ones must not (Provider::data_apart).
constexpr u64 most_with_data = 64;

template <class Key>
bool find(std::unordered_map<Key, u32> const& all, Key key, u32& peer) {
  auto const found = all.find(key);
  if (found != all.end()) peer = found->second;
  return found != all.end();
}

}  // namespace

// -- what goes

bool Ofi::send(u32 peer, std::span<char const> header, std::span<char const> payload, u64 cookie) {
  others_are_told();
  auto const& target = talked_to(peer, "send");
  check_message("ofi", header.size() + payload.size(), most_bytes);
  if (target.lost) return ended_.push_back(cookie), true;
  if (operations_->none_free()) return false;
  u32 const index = operations_->take(Operation::Step::message, peer, cookie);
  prepare(index, Preamble::Form::message, header, payload);
  if (start(index) != Outcome::no_room) return true;
  operations_->release(index);
  return false;
}

bool Ofi::write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                u32 data, u64 cookie) {
  others_are_told();
  if (talked_to(peer, "write").lost) return ended_.push_back(cookie), true;
  if (operations_->none_free()) return false;
  u32 const index = operations_->take(Operation::Step::write, peer, cookie);
  auto& operation = (*operations_)[index];
  operation.target = target, operation.offset = offset, operation.data = data;
  operation.source = source;
  if (auto const known = memory_->exposed(source)) {
    operation.registration.descriptor = known->descriptor;
  } else if (provider_.register_sources && source.size() <= buffer_size) {
    std::ranges::copy(source, operations_->buffer(index));
    operation.source = {operations_->buffer(index), source.size()};
    operation.registration.descriptor = operations_->descriptor();
  } else {
    operation.registration = memory_->source(source);
  }
  if (start(index) != Outcome::no_room) return true;
  if (operation.registration.registered) {
    waiting_.push_back(index);  // do not register it a second time
    return true;
  }
  operations_->release(index);
  return false;
}

void Ofi::prepare(u32 index, Preamble::Form form, std::span<char const> header,
                  std::span<char const> payload) {
  auto& operation = (*operations_)[index];
  Preamble const preamble{form, number_, operation.data, 0};
  char* at = operations_->buffer(index);
  for (std::span<char const> part :
       {std::span(reinterpret_cast<char const*>(&preamble), sizeof preamble), header, payload}) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  operation.sent = static_cast<u64>(at - operations_->buffer(index));
}

Ofi::Outcome Ofi::start(u32 index) {
  auto& operation = (*operations_)[index];
  void* const context = operations_->context(index);
  using enum Operation::Step;
  auto result = operation.step == write  ? start_piece(operation, context)
                : operation.step == tell ? start_data(operation, {}, context)
                                         : start_message(index);
  if (result == 0 && ++operation.under_way == 1 && operation.step == tell) {
    // Immediately: no later write may come between.
    result = start_data(operation, {}, context);
    if (result == -FI_EAGAIN) return Outcome::started;  // later, when the bytes are sent
    if (result == 0) ++operation.under_way;
  }
  if (result == 0) return Outcome::started;
  if (result == -FI_EAGAIN) return Outcome::no_room;
  lose(operation.peer, library().strerror(static_cast<int>(-result)));
  if (operation.under_way == 0) end(index);
  return Outcome::failed;
}

long Ofi::start_message(u32 index) {
  auto const& operation = (*operations_)[index];
  return fi_send(endpoint_.get(), operations_->buffer(index), operation.sent,
                 operations_->descriptor(), peers_[operation.peer].address,
                 operations_->context(index));
}

long Ofi::start_piece(Operation& operation, void* context) {
  auto const piece =
      operation.source.first(std::min<u64>(operation.source.size(), provider_.piece));
  bool const last = piece.size() == operation.source.size();
  auto const address = peers_[operation.peer].address;
  u64 const at = operation.target.base + operation.offset;
  iovec const local{const_cast<char*>(piece.data()), piece.size()};
  fi_rma_iov const remote{at, piece.size(), operation.target.key};
  void* descriptor = operation.registration.descriptor;

  bool const separate = provider_.separate_data && piece.size() > most_with_data;
  if (last && !separate && provider_.telling != Telling::message) {
    long const result = start_data(operation, piece, context);
    // Some providers support data in their queues, but not with writes (Slingshot).
    if (result != -FI_ENOSYS && result != -FI_EOPNOTSUPP) return result;
    provider_.telling = Telling::message;
  }
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = address;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = context;
  // A later message must not be reported before these bytes are there.
  bool const in_order = provider_.ordered && provider_.telling != Telling::message;
  long const result =
      fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | (in_order ? 0 : FI_DELIVERY_COMPLETE));
  if (result != 0) return result;
  operation.source = operation.source.subspan(piece.size());
  operation.offset += piece.size();
  if (last)
    operation.step = provider_.telling == Telling::message ? Operation::Step::unannounced
                                                           : Operation::Step::tell;
  return 0;
}

// The last bytes, or none, and the data.
long Ofi::start_data(Operation& operation, std::span<char const> bytes, void* context) {
  u64 const data = provider_.telling == Telling::number_in_data
                       ? u64{number_} << 32 | operation.data
                       : operation.data;
  long const result =
      fi_writedata(endpoint_.get(), bytes.data(), bytes.size(), operation.registration.descriptor,
                   data, peers_[operation.peer].address, operation.target.base + operation.offset,
                   operation.target.key, context);
  if (result != 0) return result;
  operation.source = {};
  operation.step = Operation::Step::write;
  return 0;
}

// -- what comes

bool Ofi::poll(Events& events) {
  if (peers_.empty()) return false;  // arrivals could not be assigned to a peer
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
    if (static_cast<size_t>(count) < at_once) break;  // another call has to look at each socket
  }
  return happened;
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
    return lose(peer,
                fmt::format("the sender sent a message of {} bytes, where {} fit: its size was "
                            "changed on its way",
                            size, bytes.size()));
  if (preamble.form == Preamble::Form::message)
    events.on_message(peer, bytes.subspan(sizeof preamble));
  else if (preamble.form == Preamble::Form::data) events.on_data(peer, preamble.data);
}

// An operation has ended well: it continues, or is complete.
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

}  // namespace meshpost::net::ofi
