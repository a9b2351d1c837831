#include "copy/job/rings.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/tsan_order.hpp"
#include "copy/job/message.hpp"

namespace meshpost::copying {
namespace {

constexpr u32 slots = 8;
constexpr u64 slot_bytes = largest_piece + 4096;  // whole pages, touched when they are used

struct Slot {
  u64 size;
  char bytes[slot_bytes - sizeof(u64)];  // NOLINT: shared memory
};

Error not_there() {
  return {Kind::misuse, "the engine in shared memory", "it has messages only", "report it"};
}

}  // namespace

// Each word has one writer: the sender's `sent` releases the slots before it, the receiver's
// `taken` gives them back. The other side acquires.
struct Rings::Ring {
  alignas(64) std::atomic<u64> sent;
  alignas(64) std::atomic<u64> taken;
  alignas(4096) Slot all[slots];  // NOLINT: shared memory
};

Rings::Rings(ProcessGroup const& group)
    : group_(group),
      size_(sizeof(Ring) * group.count()),
      maps_(group.count(), nullptr),
      all_(group.count()) {
  static_assert(std::atomic<u64>::is_always_lock_free, "processes share them");
  auto const map = [&](int file) {
    void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
      throw Error(Kind::out_of_memory, "copies through shared memory",
                  fmt::format("{} bytes: {}", size_, std::strerror(errno)), "use fewer processes");
    return static_cast<char*>(at);
  };
  std::vector<Descriptor> mine;
  group.together("copies through shared memory", [&] {
    mine.emplace_back(memfd_create("meshpost-rings", MFD_CLOEXEC));
    if (!mine[0] || ftruncate(mine[0].get(), static_cast<off_t>(size_)) != 0)
      throw Error(Kind::bad_environment, "copies through shared memory",
                  fmt::format("no memory file is to be had: {}", std::strerror(errno)),
                  "raise the limit of open files (ulimit -n), or of memory");
    maps_[group.number()] = map(mine[0].get());
  });
  group.together("copies through shared memory", [&] {
    group.node().share(mine, [&](u32 process, u32, int file) { maps_[process] = map(file); });
  });
  for (u32 process = 0; process < group.count(); ++process)
    if (process != group.number() && maps_[process]) {
      all_[process].out = reinterpret_cast<Ring*>(maps_[group.number()]) + process;
      all_[process].in = reinterpret_cast<Ring*>(maps_[process]) + group.number();
    }
}

Rings::~Rings() {
  for (char* const one : maps_)
    if (one) munmap(one, size_);
}

Bytes Rings::most() const { return Bytes{sizeof Slot::bytes}; }

bool Rings::send(u32 peer, std::span<char const> header, std::span<char const> payload,
                 u64 cookie) {
  others_are_told();
  auto& ring = *all_[peer].out;
  u64 const sent = ring.sent.load(std::memory_order_relaxed);
  if (sent - ring.taken.load(std::memory_order_acquire) == slots) return false;
  auto& slot = ring.all[sent % slots];
  slot.size = header.size() + payload.size();
  std::memcpy(slot.bytes, header.data(), header.size());
  if (!payload.empty()) std::memcpy(slot.bytes + header.size(), payload.data(), payload.size());
  ring.sent.store(sent + 1, std::memory_order_release);
  if (cookie != 0) done_.push_back(cookie);
  return true;
}

bool Rings::poll(net::Events& events) {
  bool any = !done_.empty();
  for (auto const cookie : std::exchange(done_, {})) events.on_done(cookie);
  for (u32 process = 0; process < all_.size(); ++process) {
    auto* const ring = all_[process].in;
    if (!ring) continue;
    u64 const taken = ring->taken.load(std::memory_order_relaxed);
    if (ring->sent.load(std::memory_order_acquire) == taken) continue;
    heard_of_others();
    auto const& slot = ring->all[taken % slots];
    events.on_message(process, {slot.bytes, std::min<u64>(slot.size, sizeof slot.bytes)});
    ring->taken.store(taken + 1, std::memory_order_release);
    any = true;
  }
  auto const now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::milliseconds(20)) return any;
  looked_ = now;
  for (u32 process = 0; process < all_.size(); ++process) {
    auto& peer = all_[process];
    if (!peer.in || peer.lost || group_.node().alive(process)) continue;
    peer.lost = true;
    events.on_lost(process, "it was killed, or has ended");
  }
  return any;
}

std::string Rings::expose(void* /*memory*/, Bytes /*size*/) { throw not_there(); }
net::RemoteMemory Rings::import(u32 /*peer*/, std::string const& /*exposed*/) { throw not_there(); }
bool Rings::write(u32 /*peer*/, std::span<char const> /*source*/,
                  net::RemoteMemory const& /*target*/, u64 /*offset*/, u32 /*data*/,
                  u64 /*cookie*/) {
  throw not_there();
}

}  // namespace meshpost::copying
