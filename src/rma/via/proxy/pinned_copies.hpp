#pragma once
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "rma/via/access.hpp"

namespace meshpost::detail {

/// Copies in one direction between a device and the host: a stream, and pinned memory that they
/// pass through, a chunk each. A chunk is free again when nobody holds it any more.
class PinnedCopies {
 public:
  static constexpr u64 chunk_bytes = Access::largest;
  static constexpr u32 chunks = 16;
  using Chunk = std::shared_ptr<char>;

  explicit PinnedCopies(Device& device);

  Stream& stream() { return *stream_; }
  std::span<char> memory() const { return {pool_->memory.as<char>(), chunks * chunk_bytes}; }
  Chunk take();  ///< null: none is free

  /// Copies at once. `keep` keeps the source unchanged, and is let go of behind the copy. If
  /// somebody waits for the copy, poll() lets go as soon as it sees the end; else when chunks run
  /// out.
  std::shared_ptr<Event> copy(void* target, std::string_view source, Keep keep, bool awaited);

  struct Transfer {
    u64 bytes;
    bool through_chunk;  ///< else its source is pinned memory
    std::function<void(Stream& stream, char* chunk)> start;
    std::function<void(Chunk const& chunk)> end;
    Chunk chunk{};
    std::shared_ptr<Event> copied{};  ///< once it has started
  };
  /// Transfers start and end in their order, as soon as they can.
  void add(Transfer transfer);
  bool poll();
  /// Transfers, and copies that somebody waits for.
  u64 under_way() const { return transfers_.size() + awaited_; }
  /// Forgets all of them, after those that have started are over.
  void drop();

 private:
  // A holder of a chunk keeps its memory alive.
  struct Pool {
    Allocation memory;
    std::array<bool, chunks> taken{};
  };
  struct Passing {
    std::shared_ptr<Event> copied;
    Keep keep;
    bool awaited;
  };
  // Starting a copy takes the host about as long as 256 KiB take to pass PCIe (5 us). So when these
  // have started, the caller should first use their results, before it starts the next.
  static constexpr u64 most_at_once = 2 * chunk_bytes;

  void start();
  bool let_go();

  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Stream> stream_;
  std::deque<Transfer> transfers_;
  std::deque<Passing> passing_;
  u64 copying_ = 0;  // bytes of transfers that have started
  u64 awaited_ = 0;
};

}  // namespace meshpost::detail
