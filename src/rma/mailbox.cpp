#include "rma/mailbox.hpp"

#include <algorithm>
#include <cstring>

#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

void come_to_rest(Stream& stream) {
  try {
    stream.synchronize();
  } catch (Error const&) {
    return;  // the device is broken: nothing comes from it any more
  }
}

}  // namespace

std::optional<u32> MailboxAccess::Staging::take() {
  for (u32 i = 0; i < chunks; ++i) {
    u32 const chunk = (next + i) % chunks;
    if (held[chunk] || (copies[chunk] && !copies[chunk]->done())) continue;
    copies[chunk].reset();
    held[chunk] = true;
    next = chunk + 1;
    return chunk;
  }
  return std::nullopt;
}

MailboxAccess::MailboxAccess(Device& device)
    : device_(device),
      letters_(device.allocate(Bytes{Mailbox::capacity * sizeof(Letter)}, MemoryKind::pinned)),
      applied_(device.allocate(Bytes{256}, MemoryKind::pinned)),
      words_(device.allocate(Bytes{256}, MemoryKind::device)),
      into_(device.make_stream()),
      out_of_(device.make_stream()) {
  into_staging_.memory = device.allocate(Bytes{chunks * largest}, MemoryKind::pinned);
  out_staging_.memory = device.allocate(Bytes{chunks * largest}, MemoryKind::pinned);
  reset();
}

MailboxAccess::~MailboxAccess() { drop(); }

Mailbox MailboxAccess::mailbox() const {
  return {letters_.as<Letter>(), applied_.as<u32>(), words_.as<Mailbox::Words>()};
}

void MailboxAccess::begin() { reset(); }

void MailboxAccess::reset() {
  std::memset(letters_.data(), 0, letters_.size());
  std::memset(applied_.data(), 0, applied_.size());
  device_.fill(words_.data(), 0, words_.size());
  written_ = 0;
  written_to_all_ = 0;
  under_way_ = 0;
}

void MailboxAccess::drop() {
  for (auto* const stream : {into_.get(), out_of_.get()}) come_to_rest(*stream);
  for (auto* const staging : {&into_staging_, &out_staging_}) {
    staging->held.fill(false);
    staging->copies.fill(nullptr);
  }
  open_.reset();
  last_copy_.reset();
  backlog_.clear();
  reads_.clear();
  writes_.clear();
  under_way_ = 0;
}

void MailboxAccess::end() {
  flush();
  into_->synchronize();
  u32 taken = 0;
  device_.read(&taken, &mailbox().words->taken, Bytes{sizeof taken});
  for (; taken != written_; ++taken) carry_out(letters_.as<Letter>()[taken % Mailbox::capacity]);
  std::deque<Kept> kept;
  std::swap(kept, backlog_);
  for (auto& one : kept) {
    one.delivery.bytes = one.bytes;
    if (!one.bytes.empty())
      device_.write(one.delivery.target, one.bytes.data(), Bytes{one.bytes.size()});
    Letter rest;
    rest.counter = one.delivery.counter, rest.value = one.delivery.value;
    rest.sender_word = one.delivery.sender_word, rest.sender = one.delivery.sender;
    carry_out(rest);
  }
  drop();
}

// What a rank would have done, for nobody else does any more.
void MailboxAccess::carry_out(Letter const& letter) {
  u32 const bytes = letter.word != 0 ? letter.word : letter.bytes;
  if (bytes != 0) device_.write(letter.target, letter.data, Bytes{bytes});
  if (!letter.counter) return;
  u32 count = 0;
  device_.read(&count, letter.counter, Bytes{sizeof count});
  count += letter.value;
  device_.write(letter.counter, &count, Bytes{sizeof count});
  if (letter.sender_word)
    device_.write(letter.sender_word, &letter.sender, Bytes{sizeof letter.sender});
}

bool MailboxAccess::unopened() const {
  return memory::load_acquire(applied_.as<u32>()) !=
         written_to_all_.load(std::memory_order_acquire);
}

void MailboxAccess::deliver(Delivery const& delivery) {
  if (backlog_.empty() && try_deliver(delivery)) return count_what_is_under_way();
  backlog_.push_back({delivery, std::string(delivery.bytes)});
  count_what_is_under_way();
}

// False: there is no room, and nothing was done.
bool MailboxAccess::try_deliver(Delivery const& delivery) {
  bool const is_long = delivery.bytes.size() > Letter::most;
  if (!is_long || delivery.counter)
    if (written_ - memory::load_acquire(applied_.as<u32>()) >= Mailbox::capacity) return false;
  if (is_long && !append(delivery)) return false;
  if (is_long && !delivery.counter) return true;
  flush();
  write_letter(delivery, is_long ? std::string_view() : delivery.bytes);
  return true;
}

bool MailboxAccess::append(Delivery const& delivery) {
  u64 const size = delivery.bytes.size();
  if (open_ && (open_->target + open_->filled != delivery.target || size > largest - open_->filled))
    flush();
  if (!open_) {
    auto const chunk = into_staging_.take();
    if (!chunk) return false;
    open_ = Open{*chunk, delivery.target, 0};
  }
  std::memcpy(into_staging_.at(open_->chunk) + open_->filled, delivery.bytes.data(), size);
  open_->filled += size;
  return true;
}

void MailboxAccess::flush() {
  if (!open_) return;
  into_->copy(open_->target, into_staging_.at(open_->chunk), Bytes{open_->filled});
  last_copy_ = into_->record();
  into_staging_.copies[open_->chunk] = last_copy_;
  into_staging_.held[open_->chunk] = false;
  open_.reset();
}

void MailboxAccess::write_letter(Delivery const& delivery, std::string_view bytes) {
  auto& letter = letters_.as<Letter>()[written_ % Mailbox::capacity];
  letter.target = delivery.target;
  letter.counter = delivery.counter;
  letter.sender_word = delivery.sender_word;
  letter.value = delivery.value;
  letter.sender = delivery.sender;
  letter.bytes = static_cast<u32>(bytes.size());
  letter.word = delivery.word ? letter.bytes : 0;
  if (!bytes.empty()) std::memcpy(letter.data, bytes.data(), bytes.size());
  ++written_;
  written_to_all_.store(written_, std::memory_order_release);
  if (last_copy_ && last_copy_->done()) last_copy_.reset();
  if (last_copy_) into_->store(&letter.ready, written_);
  else memory::store(&letter.ready, written_, Order::system);
}

void MailboxAccess::read(void const* source, u64 bytes, Take take) {
  reads_.push_back({.source = source, .size = bytes, .take = std::move(take)});
  begin_transfers(reads_, true);
  count_what_is_under_way();
}

void MailboxAccess::write(void* target, std::string_view bytes, std::function<void()> then) {
  writes_.push_back({.target = target,
                     .bytes = std::string(bytes),
                     .size = bytes.size(),
                     .then = std::move(then)});
  begin_transfers(writes_, false);
  count_what_is_under_way();
}

void MailboxAccess::begin_transfers(std::deque<Transfer>& transfers, bool out) {
  auto& staging = out ? out_staging_ : into_staging_;
  auto& stream = out ? *out_of_ : *into_;
  for (auto& one : transfers) {
    if (one.chunk) continue;
    one.chunk = staging.take();
    if (!one.chunk) return;
    char* const memory = staging.at(*one.chunk);
    if (out) {
      stream.copy(memory, one.source, Bytes{one.size});
    } else {
      std::memcpy(memory, one.bytes.data(), one.size);
      stream.copy(one.target, memory, Bytes{one.size});
    }
    staging.copies[*one.chunk] = stream.record();
  }
}

bool MailboxAccess::end_transfers(std::deque<Transfer>& transfers, bool out) {
  auto& staging = out ? out_staging_ : into_staging_;
  bool any = false;
  while (!transfers.empty() && transfers.front().chunk &&
         staging.copies[*transfers.front().chunk]->done()) {
    auto const one = std::move(transfers.front());
    transfers.pop_front();
    if (out) one.take({staging.at(*one.chunk), one.size});
    else one.then();
    staging.held[*one.chunk] = false;
    any = true;
  }
  begin_transfers(transfers, out);
  return any;
}

bool MailboxAccess::poll() {
  if (!open_ && backlog_.empty() && reads_.empty() && writes_.empty()) return false;
  bool any = open_.has_value();
  flush();
  while (!backlog_.empty()) {
    auto& kept = backlog_.front();
    kept.delivery.bytes = kept.bytes;
    if (!try_deliver(kept.delivery)) break;
    backlog_.pop_front();
    any = true;
  }
  any |= end_transfers(reads_, true);
  any |= end_transfers(writes_, false);
  count_what_is_under_way();
  return any;
}

void MailboxAccess::count_what_is_under_way() {
  under_way_.store(backlog_.size() + reads_.size() + writes_.size() + (open_ ? 1 : 0),
                   std::memory_order_release);
}

}  // namespace meshpost::detail
