#include "on_stream/far_sender.hpp"

#include <algorithm>
#include <cstring>

#include "base/pauses.hpp"
#include "base/thread.hpp"

namespace meshpost::detail {

FarSender::FarSender(Device& device, std::function<void(std::exception_ptr)> failed)
    : device_(device),
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
  for (Pauses pauses; memory::load_acquire(ring_.taken) != posted; pauses.rest()) {
  }
}

void FarSender::work() {
  Pauses pauses(5000);  // awake for some 2 ms: the next message often comes within less
  for (u32 number = 0; !ending_;) {
    if (!carry_out(number)) {
      pauses.rest();
      continue;
    }
    ++number;
    memory::store(taken_.as<u32>(), number, Order::system);
    pauses.renew();
  }
}

bool FarSender::carry_out(u32 number) {
  auto& message = ring_.messages[number % StreamRing::slots];
  if (memory::load_acquire(&message.flag) != number + 1) return false;
  if (drops_) return true;
  try {
    auto const& target = this->target(message.operation);
    auto const* const bytes = ring_.bytes_of(number);
    bool const last = message.offset + message.bytes == message.whole;
    if (last) target.write_and_notify(message.offset, bytes, message.bytes);
    else target.write(message.offset, bytes, message.bytes);
  } catch (...) {
    drops_ = true;
    failed_(std::current_exception());
  }
  return true;
}

}  // namespace meshpost::detail
