#include "on_stream/far_sender.hpp"

#include <algorithm>
#include <cstring>

#include "base/pauses.hpp"
#include "base/thread.hpp"

namespace meshpost::detail {

FarSender::FarSender(Device& device, FarMemory const& memory,
                     std::function<void(std::exception_ptr)> failed)
    : device_(device),
      memory_(memory),
      failed_(std::move(failed)),
      messages_(
          device.allocate(Bytes{StreamRing::slots * sizeof(StreamMessage)}, MemoryKind::pinned)),
      bytes_(device.allocate(Bytes{StreamRing::slots * StreamMessage::most_bytes},
                             MemoryKind::pinned)),
      taken_(device.allocate(Bytes{sizeof(u32)}, MemoryKind::pinned)),
      posted_(device.allocate(Bytes{sizeof(u32)}, MemoryKind::device)) {
  std::memset(messages_.data(), 0, messages_.size());
  std::memset(taken_.data(), 0, taken_.size());
  device.fill(posted_.data(), 0, posted_.size());
  ring_ = {.messages = messages_.as<StreamMessage>(),
           .bytes = bytes_.as<char>(),
           .taken = taken_.as<u32>(),
           .posted = posted_.as<u32>()};
  thread_ = start_thread("carry out the messages of a stream", [this] { work(); });
}

FarSender::~FarSender() {
  ending_ = true;
  thread_.join();
}

u32 FarSender::number_of(FarTarget const& target) {
  std::scoped_lock const lock(mutex_);
  auto const found = std::ranges::find(targets_, target);
  auto const number = static_cast<u32>(found - targets_.begin());
  if (number == targets_.size()) targets_.push_back(target);
  return number;
}

FarTarget const& FarSender::target(u32 number) {
  std::scoped_lock const lock(mutex_);
  return targets_.at(number);
}

void FarSender::drain() {
  u32 posted = 0;
  device_.read(&posted, ring_.posted, Bytes{sizeof posted});
  for (Pauses pauses; memory::load_acquire(ring_.taken) != posted || busy_; pauses.rest()) {
  }
}

// Either it sees `drops_` when it is busy, or this sees that it is busy.
void FarSender::abandon() {
  drops_ = true;
  for (Pauses pauses; busy_; pauses.rest()) {
  }
}

void FarSender::work() {
  Pauses pauses(5000);  // awake for some 2 ms: the next message often comes within less
  for (u32 number = 0; !ending_;) {
    if (!look(number)) {
      pauses.rest();
      continue;
    }
    ++number;
    memory::store(taken_.as<u32>(), number, Order::system);
    pauses.renew();
  }
}

// Busy until nothing is under way. So who has seen that all messages are taken, and then that it is
// not busy, knows that they are carried out.
bool FarSender::look(u32 number) {
  bool const comes =
      memory::load_acquire(&ring_.messages[number % StreamRing::slots].flag) == number + 1;
  if (!comes && under_way_.empty()) return false;
  busy_ = true;
  try {
    if (drops_) drop_rest();
    else if (comes) carry_out(number);
    else end_answered();
  } catch (...) {
    drops_ = true;
    failed_(std::current_exception());
    drop_rest();
  }
  busy_ = !under_way_.empty();
  return comes;
}

// Long bytes come in several messages, and the last one's notification is for all of them. So it is
// sent when the other process has written those before. These may be under way together.
void FarSender::carry_out(u32 number) {
  auto const& message = ring_.messages[number % StreamRing::slots];
  auto const& target = this->target(message.operation);
  auto const* const bytes = ring_.bytes_of(number);
  if (message.offset == 0) drop_rest();  // of a put whose stream has ended within it
  if (message.offset + message.bytes == message.whole) {
    while (!under_way_.empty()) end_first();
    return target.write_and_notify(message.skipped + message.offset, bytes, message.bytes);
  }
  if (under_way_.size() == FarMemory::most_under_way) end_first();
  if (auto begun = target.write(message.skipped + message.offset, bytes, message.bytes))
    under_way_.push_back(std::move(*begun));
  begun_ = std::chrono::steady_clock::now();
}

void FarSender::end_first() {
  auto begun = std::move(under_way_.front());
  under_way_.pop_front();
  memory_.end_write(std::move(begun));
}

// Those of a put whose stream has ended within it are waited for in the end, because that has a
// limit.
void FarSender::end_answered() {
  constexpr std::chrono::milliseconds limit{100};
  bool const late = std::chrono::steady_clock::now() - begun_ > limit;
  while (!under_way_.empty() && (late || under_way_.front().is_over())) end_first();
}

// Waits until none of them is carried out later, over what has come since.
void FarSender::drop_rest() {
  for (auto const& begun : under_way_) memory_.drop(begun);
  under_way_.clear();
}

}  // namespace meshpost::detail
