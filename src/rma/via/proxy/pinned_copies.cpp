#include "rma/via/proxy/pinned_copies.hpp"

#include <algorithm>
#include <utility>

#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

void quiesce(Stream& stream) {
  try {
    stream.synchronize();
  } catch (Error const&) {
    return;  // the device is broken: nothing comes from it any more
  }
}

}  // namespace

PinnedCopies::PinnedCopies(Device& device)
    : pool_(std::make_shared<Pool>(
          Pool{device.allocate(Bytes{chunks * chunk_bytes}, MemoryKind::pinned)})),
      stream_(device.make_stream()) {}

PinnedCopies::Chunk PinnedCopies::take() {
  auto free = std::ranges::find(pool_->taken, false);
  if (free == pool_->taken.end() && let_go()) free = std::ranges::find(pool_->taken, false);
  if (free == pool_->taken.end()) return nullptr;
  *free = true;
  auto const number = static_cast<u64>(free - pool_->taken.begin());
  return {pool_->memory.as<char>() + number * chunk_bytes,
          [pool = pool_, number](char*) { pool->taken[number] = false; }};
}

std::shared_ptr<Event> PinnedCopies::copy(void* target, std::string_view source, Keep keep,
                                          bool awaited) {
  stream_->copy(target, source.data(), Bytes{source.size()});
  auto copied = stream_->record();
  passing_.push_back({copied, std::move(keep), awaited});
  if (awaited) ++awaited_;
  return copied;
}

bool PinnedCopies::let_go() {
  bool any = false;
  for (; !passing_.empty() && passing_.front().copied->done(); any = true) {
    if (passing_.front().awaited) --awaited_;
    passing_.pop_front();
  }
  return any;
}

void PinnedCopies::add(Transfer transfer) {
  transfers_.push_back(std::move(transfer));
  start();
}

void PinnedCopies::start() {
  for (auto& one : transfers_) {
    if (one.copied) continue;
    if (copying_ >= most_at_once) return;
    if (one.through_chunk) one.chunk = take();
    if (one.through_chunk && !one.chunk) return;
    one.start(*stream_, one.chunk.get());
    one.copied = stream_->record();
    copying_ += one.bytes;
  }
}

bool PinnedCopies::poll() {
  bool any = awaited_ != 0 && let_go();
  while (!transfers_.empty() && transfers_.front().copied && transfers_.front().copied->done()) {
    auto const one = std::move(transfers_.front());
    transfers_.pop_front();
    copying_ -= one.bytes;
    one.end(one.chunk);
    any = true;
  }
  start();
  return any;
}

void PinnedCopies::drop() {
  quiesce(*stream_);
  transfers_.clear();
  passing_.clear();
  copying_ = awaited_ = 0;
}

}  // namespace meshpost::detail
