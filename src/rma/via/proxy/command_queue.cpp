#include "rma/via/proxy/command_queue.hpp"

#include <algorithm>
#include <cstring>

namespace meshpost::detail {
namespace {

constexpr u64 short_bytes = 128;  // a copy of fewer would cost more than keeping them

}  // namespace

CommandQueueAccess::CommandQueueAccess(Device& device)
    : device_(device),
      commands_(
          device.allocate(Bytes{CommandQueue::capacity * sizeof(Command)}, MemoryKind::pinned)),
      bytes_(device.allocate(Bytes{decltype(CommandQueue::bytes)::size}, MemoryKind::pinned)),
      applied_(device.allocate(Bytes{256}, MemoryKind::pinned)),
      words_(device.allocate(Bytes{256}, MemoryKind::device)),
      into_(device),
      out_of_(device) {
  reset();
}

CommandQueueAccess::~CommandQueueAccess() { drop(); }

CommandQueue CommandQueueAccess::command_queue() const {
  return {
      {commands_.as<Command>(), applied_.as<u32>()}, words_.as<RingTurns>(), {bytes_.as<char>()}};
}

// An end() that threw may have left something.
void CommandQueueAccess::begin() {
  drop();
  reset();
}

void CommandQueueAccess::reset() {
  std::memset(commands_.data(), 0, commands_.size());
  std::memset(applied_.data(), 0, applied_.size());
  device_.fill(words_.data(), 0, words_.size());
  written_ = 0;
  written_to_all_ = 0;
  pending_.clear();
  count_what_is_under_way();
}

void CommandQueueAccess::drop() {
  into_.drop();
  out_of_.drop();
  open_.reset();
  last_copy_.reset();
  pending_.clear();
  backlog_.clear();
  count_what_is_under_way();
}

void CommandQueueAccess::end() {
  flush();
  into_.stream().synchronize();
  u32 taken = 0;
  device_.read(&taken, &command_queue().turns->taken, Bytes{sizeof taken});
  bool const all_told = taken == written_ && room() == CommandQueue::capacity;
  for (; taken != written_; ++taken) carry_out(taken);
  std::deque<Kept> kept;
  std::swap(kept, backlog_);
  for (auto& one : kept) {
    one.delivery.bytes = one.bytes;
    if (!one.bytes.empty())
      device_.write(one.delivery.message.target(), one.bytes.data(), Bytes{one.bytes.size()});
    if (one.delivery.message.signal.any()) raise(one.delivery.message.signal);
  }
  if (!all_told) {  // the next run's commands come behind these
    RingTurns const turns{.taken = written_, .claimed = written_, .told = written_, .looking = 0};
    device_.write(command_queue().turns, &turns, Bytes{sizeof turns});
    command_queue().tell(written_);
  }
  drop();
}

// Does what a rank would have done, because nobody else does it any more.
void CommandQueueAccess::carry_out(u32 number) {
  auto const& message = command_queue().at(number).message;
  if (message.signal.has_more() && message.bytes != 0)
    device_.write(message.target(), command_queue().bytes.of(number), Bytes{message.bytes});
  if (message.signal.any()) raise(message.signal);
}

void CommandQueueAccess::raise(via::Signal const& count) {
  u32 value = 0;
  device_.read(&value, count.word(), Bytes{sizeof value});
  value += count.value();
  device_.write(count.word(), &value, Bytes{sizeof value});
  if (count.distance() != 0)
    device_.write(count.origin_word(), &count.origin, Bytes{sizeof count.origin});
}

bool CommandQueueAccess::has_pending_commands() const {
  return kept_.load(std::memory_order_acquire) != 0 ||
         memory::load_acquire(applied_.as<u32>()) !=
             written_to_all_.load(std::memory_order_acquire);
}

void CommandQueueAccess::deliver(Delivery const& delivery) {
  if (backlog_.empty() && try_deliver(delivery)) return count_what_is_under_way();
  // Copied, because else they would be kept in place until ranks carry out commands.
  backlog_.push_back({delivery, std::string(delivery.bytes)});
  backlog_.back().delivery.keep = nullptr;
  count_what_is_under_way();
}

u32 CommandQueueAccess::room() const { return command_queue().room(written_); }

bool CommandQueueAccess::completed() const {
  return backlog_.empty() && !open_ && room() == CommandQueue::capacity &&
         (!last_copy_ || last_copy_->done());
}

void CommandQueueAccess::forget_done() {
  u32 const closed = CommandQueue::capacity - room();
  std::erase_if(pending_, [&](Pending const& one) { return written_ - one.command >= closed; });
}

// Commands for some of the same bytes, which may not be opened yet.
std::vector<CommandQueueAccess::Pending*> CommandQueueAccess::pending_under(char const* target,
                                                                            u64 bytes) {
  std::vector<Pending*> found;
  if (!pending_.empty()) forget_done();
  for (auto& one : pending_)
    if (one.target < target + bytes && target < one.target + one.bytes) found.push_back(&one);
  return found;
}

// False: there is no room, and nothing was done.
bool CommandQueueAccess::try_deliver(Delivery const& delivery) {
  auto const& [message, bytes, keep] = delivery;
  char* const target = message.target();
  // Bytes alone, for which there is no room, are copied too: nobody keeps them then, however long
  // no rank carries out commands.
  bool const is_long = bytes.size() > via::Message::most_inline ||
                       (bytes.size() > short_bytes && !message.signal.any() && room() == 0);
  auto const under = is_long ? pending_under(target, bytes.size()) : std::vector<Pending*>();
  u64 const commands = under.size() + (!is_long || message.signal.any() ? 1 : 0);
  if (commands > room()) return false;
  if (is_long && !copy(delivery)) return false;
  if (commands == 0) return true;
  flush();
  for (auto* const one : under) {
    char* const begin = std::max(one->target, target);
    char* const end = std::min(one->target + one->bytes, target + bytes.size());
    write_command({.address = reinterpret_cast<u64>(begin)},
                  bytes.substr(static_cast<u64>(begin - target), static_cast<u64>(end - begin)));
    one->command = written_;
  }
  if (is_long && !message.signal.any()) return true;
  write_command(message, is_long ? std::string_view() : bytes);
  if (!is_long && !bytes.empty()) {
    if (pending_.size() >= 2 * CommandQueue::capacity) forget_done();
    pending_.push_back({target, bytes.size(), written_});
  }
  return true;
}

// False: no chunk is free.
bool CommandQueueAccess::copy(Delivery const& delivery) {
  if (!delivery.keep) return append(delivery);
  flush();
  last_copy_ = into_.copy(delivery.message.target(), delivery.bytes, delivery.keep, true);
  return true;
}

bool CommandQueueAccess::append(Delivery const& delivery) {
  u64 const size = delivery.bytes.size();
  char* const target = delivery.message.target();
  if (open_ && (open_->target + open_->filled != target || size > largest - open_->filled)) flush();
  if (!open_) {
    auto chunk = into_.take();
    if (!chunk) return false;
    open_ = Open{std::move(chunk), target, 0};
  }
  std::memcpy(open_->chunk.get() + open_->filled, delivery.bytes.data(), size);
  open_->filled += size;
  return true;
}

void CommandQueueAccess::flush() {
  if (!open_) return;
  last_copy_ = into_.copy(open_->target, {open_->chunk.get(), open_->filled}, open_->chunk, false);
  open_.reset();
}

void CommandQueueAccess::write_command(via::Message message, std::string_view bytes) {
  auto& command = command_queue().at(written_);
  message.bytes = bytes.size();
  if (bytes.empty() && message.signal.any()) {
    command.message.signal.counter = message.signal.counter;
    command.message.signal.origin = message.signal.origin;
  } else {
    message.put_into(command.message);
    if (!bytes.empty()) std::memcpy(command_queue().bytes.of(written_), bytes.data(), bytes.size());
  }
  ++written_;
  written_to_all_.store(written_, std::memory_order_release);
  if (last_copy_ && last_copy_->done()) last_copy_.reset();
  if (last_copy_) into_.stream().store(command.flag(), written_);
  else command_queue().publish(written_ - 1);
}

void CommandQueueAccess::read(void const* source, u64 bytes, Take take) {
  out_of_.add(
      {.bytes = bytes,
       .through_chunk = true,
       .start = [source, bytes](Stream& stream,
                                char* chunk) { stream.copy(chunk, source, Bytes{bytes}); },
       .end = [bytes, take = std::move(take)](
                  PinnedCopies::Chunk const& chunk) { take({chunk.get(), bytes}, chunk); }});
  count_what_is_under_way();
}

void CommandQueueAccess::write(void* target, std::string_view bytes, Keep keep,
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

bool CommandQueueAccess::poll() {
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

void CommandQueueAccess::count_what_is_under_way() {
  kept_.store(backlog_.size(), std::memory_order_release);
  under_way_.store(into_.under_way() + out_of_.under_way() + (open_ ? 1 : 0),
                   std::memory_order_release);
}

}  // namespace meshpost::detail
