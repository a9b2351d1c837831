#include "rma/via/proxy/mailbox.hpp"

#include <algorithm>
#include <cstring>

namespace meshpost::detail {

MailboxAccess::MailboxAccess(Device& device)
    : device_(device),
      letters_(device.allocate(Bytes{Mailbox::capacity * sizeof(Letter)}, MemoryKind::pinned)),
      applied_(device.allocate(Bytes{256}, MemoryKind::pinned)),
      words_(device.allocate(Bytes{256}, MemoryKind::device)),
      into_(device),
      out_of_(device) {
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
  closed_.clear();
  count_what_is_under_way();
}

void MailboxAccess::drop() {
  into_.drop();
  out_of_.drop();
  open_.reset();
  last_copy_.reset();
  closed_.clear();
  backlog_.clear();
  count_what_is_under_way();
}

void MailboxAccess::end() {
  flush();
  into_.stream().synchronize();
  u32 taken = 0;
  device_.read(&taken, &mailbox().words->taken, Bytes{sizeof taken});
  bool const all_told = taken == written_ && room() == Mailbox::capacity;
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
  if (!all_told) {  // the next run's letters go on behind these
    Mailbox::Words const words{.taken = written_, .claimed = written_, .told = written_};
    device_.write(mailbox().words, &words, Bytes{sizeof words});
    memory::store(applied_.as<u32>(), written_, Order::system);
  }
  drop();
}

// What a rank would have done, for nobody else does any more.
void MailboxAccess::carry_out(Letter const& letter) {
  if (letter.alone.place != 0) {
    auto const& count = letter.alone;
    return raise(count.counter(), count.has_sender() ? 1 : count.number,
                 count.has_sender() ? count.sender_word() : nullptr, count.number);
  }
  u32 const bytes = letter.word != 0 ? letter.word : letter.bytes;
  if (bytes != 0) device_.write(letter.target, letter.data, Bytes{bytes});
  if (letter.counter) raise(letter.counter, letter.value, letter.sender_word, letter.sender);
}

void MailboxAccess::raise(u32* counter, u32 value, u32* sender_word, u32 sender) {
  u32 count = 0;
  device_.read(&count, counter, Bytes{sizeof count});
  count += value;
  device_.write(counter, &count, Bytes{sizeof count});
  if (sender_word) device_.write(sender_word, &sender, Bytes{sizeof sender});
}

bool MailboxAccess::unopened() const {
  return kept_.load(std::memory_order_acquire) != 0 ||
         memory::load_acquire(applied_.as<u32>()) !=
             written_to_all_.load(std::memory_order_acquire);
}

void MailboxAccess::deliver(Delivery const& delivery) {
  if (backlog_.empty() && try_deliver(delivery)) return count_what_is_under_way();
  // Not kept where they lie, which would be until ranks open letters.
  backlog_.push_back({delivery, std::string(delivery.bytes)});
  backlog_.back().delivery.keep = nullptr;
  count_what_is_under_way();
}

u32 MailboxAccess::room() const {
  return Mailbox::capacity - (written_ - memory::load_acquire(applied_.as<u32>()));
}

bool MailboxAccess::settled() const {
  return backlog_.empty() && !open_ && room() == Mailbox::capacity &&
         (!last_copy_ || last_copy_->done());
}

void MailboxAccess::forget_opened() {
  u32 const closed = Mailbox::capacity - room();
  std::erase_if(closed_, [&](Closed const& one) { return written_ - one.letter >= closed; });
}

// Letters for some of the same bytes, which may be opened later than now.
std::vector<MailboxAccess::Closed*> MailboxAccess::closed_under(Delivery const& delivery) {
  std::vector<Closed*> found;
  if (!closed_.empty()) forget_opened();
  for (auto& one : closed_)
    if (one.target < delivery.target + delivery.bytes.size() &&
        delivery.target < one.target + one.bytes)
      found.push_back(&one);
  return found;
}

// False: there is no room, and nothing was done.
bool MailboxAccess::try_deliver(Delivery const& delivery) {
  bool const is_long = delivery.bytes.size() > Letter::most;
  auto const under = is_long ? closed_under(delivery) : std::vector<Closed*>();
  u64 const letters = under.size() + (!is_long || delivery.counter ? 1 : 0);
  if (letters > room()) return false;
  if (is_long && !copy(delivery)) return false;
  if (letters == 0) return true;
  flush();
  for (auto* const one : under) {
    char* const begin = std::max(one->target, delivery.target);
    char* const end = std::min(one->target + one->bytes, delivery.target + delivery.bytes.size());
    write_letter({.target = begin}, delivery.bytes.substr(static_cast<u64>(begin - delivery.target),
                                                          static_cast<u64>(end - begin)));
    one->letter = written_;
  }
  if (is_long && !delivery.counter) return true;
  write_letter(delivery, is_long ? std::string_view() : delivery.bytes);
  if (!is_long && !delivery.bytes.empty()) {
    if (closed_.size() >= 2 * Mailbox::capacity) forget_opened();
    closed_.push_back({delivery.target, delivery.bytes.size(), written_});
  }
  return true;
}

// False: no chunk is free.
bool MailboxAccess::copy(Delivery const& delivery) {
  if (!delivery.keep) return append(delivery);
  flush();
  last_copy_ = into_.copy(delivery.target, delivery.bytes, delivery.keep, true);
  return true;
}

bool MailboxAccess::append(Delivery const& delivery) {
  u64 const size = delivery.bytes.size();
  if (open_ && (open_->target + open_->filled != delivery.target || size > largest - open_->filled))
    flush();
  if (!open_) {
    auto chunk = into_.take();
    if (!chunk) return false;
    open_ = Open{std::move(chunk), delivery.target, 0};
  }
  std::memcpy(open_->chunk.get() + open_->filled, delivery.bytes.data(), size);
  open_->filled += size;
  return true;
}

void MailboxAccess::flush() {
  if (!open_) return;
  last_copy_ = into_.copy(open_->target, {open_->chunk.get(), open_->filled}, open_->chunk, false);
  open_.reset();
}

void MailboxAccess::write_letter(Delivery const& delivery, std::string_view bytes) {
  auto& letter = letters_.as<Letter>()[written_ % Mailbox::capacity];
  bool const one = !delivery.sender_word || delivery.value == 1;
  if (bytes.empty() && delivery.counter && one &&
      BareCount::fits(delivery.counter, delivery.sender_word)) {
    letter.alone.place = BareCount::place_of(delivery.counter, delivery.sender_word);
    letter.alone.number = delivery.sender_word ? delivery.sender : delivery.value;
  } else {
    letter.alone.place = 0;
    letter.target = delivery.target;
    letter.counter = delivery.counter;
    letter.sender_word = delivery.sender_word;
    letter.value = delivery.value;
    letter.sender = delivery.sender;
    letter.bytes = static_cast<u32>(bytes.size());
    letter.word = delivery.word ? letter.bytes : 0;
    if (!bytes.empty()) std::memcpy(letter.data, bytes.data(), bytes.size());
  }
  ++written_;
  written_to_all_.store(written_, std::memory_order_release);
  if (last_copy_ && last_copy_->done()) last_copy_.reset();
  if (last_copy_) into_.stream().store(&letter.alone.ready, written_);
  else memory::store(&letter.alone.ready, written_, Order::system);
}

void MailboxAccess::read(void const* source, u64 bytes, Take take) {
  out_of_.add(
      {.bytes = bytes,
       .through_chunk = true,
       .start = [source, bytes](Stream& stream,
                                char* chunk) { stream.copy(chunk, source, Bytes{bytes}); },
       .end = [bytes, take = std::move(take)](
                  PinnedCopies::Chunk const& chunk) { take({chunk.get(), bytes}, chunk); }});
  count_what_is_under_way();
}

void MailboxAccess::write(void* target, std::string_view bytes, Keep keep,
                          std::function<void()> then) {
  bool const kept = keep != nullptr;
  PinnedCopies::Transfer transfer{
      .bytes = bytes.size(), .through_chunk = !kept, .start = {}, .end = {}};
  if (kept)
    transfer.start = [target, bytes](Stream& stream, char*) {
      stream.copy(target, bytes.data(), Bytes{bytes.size()});
    };
  else
    transfer.start = [target, copy = std::string(bytes)](Stream& stream, char* chunk) {
      copy.copy(chunk, copy.size());
      stream.copy(target, chunk, Bytes{copy.size()});
    };
  transfer.end = [keep = std::move(keep), then = std::move(then)](PinnedCopies::Chunk const&) {
    then();
  };
  into_.add(std::move(transfer));
  count_what_is_under_way();
}

bool MailboxAccess::poll() {
  if (!open_ && backlog_.empty() && into_.under_way() == 0 && out_of_.under_way() == 0)
    return false;
  bool any = open_.has_value();
  flush();
  while (!backlog_.empty()) {
    auto& kept = backlog_.front();
    kept.delivery.bytes = kept.bytes;
    if (!try_deliver(kept.delivery)) break;
    backlog_.pop_front();
    any = true;
  }
  any |= out_of_.poll();
  any |= into_.poll();
  count_what_is_under_way();
  return any;
}

void MailboxAccess::count_what_is_under_way() {
  kept_.store(backlog_.size(), std::memory_order_release);
  under_way_.store(into_.under_way() + out_of_.under_way() + (open_ ? 1 : 0),
                   std::memory_order_release);
}

}  // namespace meshpost::detail
