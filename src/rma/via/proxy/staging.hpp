#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rma/via/access.hpp"
#include "rma/via/proxy/remote_heap.hpp"

namespace meshpost::detail {

/// Slots of pinned memory, into which engines write long bytes for devices whose memory they can't
/// write to. This process has some for each process that may write, and knows those of others that
/// are for this process. One thread at a time.
///
/// Between a pair of processes, writes take the slots in turn, in the order of their messages. So
/// the writer knows by a count which are free, and the reader which slot is next. The reader lets
/// go of a slot when its bytes have been copied on. Each message tells the writer how many slots
/// have been let go of, in the order in which they were taken. A slot is written again only after
/// that.
///
/// A writer that has no free slot waits only for the reader's proxy and its copy engine. No rank is
/// needed there (Access::deliver), and none here. If all slots are used and then let go of, the
/// writer has not been told of at least half of them. Then the reader sends a message for that
/// (news).
class Staging {
 public:
  /// As much as is read from a device at once. Shorter pieces cost more in messages and in started
  /// copies. With longer pieces, less is in flight at both ends at once.
  static constexpr u64 slot_bytes = Access::largest;
  /// Between a pair of processes. One slot is written, one is summed, one is copied on. The same
  /// number again is for the time until the writer has heard. A power of two, so that counts may
  /// wrap.
  static constexpr u32 most_slots = 8;
  /// In a process: with more than 16 others each has fewer slots, with more than 128 none.
  static constexpr u64 most_memory = u64{64} << 20;

  Staging(Layout const& layout, u32 processes) : layout_(layout), peers_(processes) {}

  /// Makes own slots, and learns those of others. Collective. A process that has none to offer is
  /// sent messages.
  void join(net::Engine& engine, ProcessGroup const& group);

  // -- in others
  bool offered_by(u32 process) const { return peers_[process].theirs.slots != 0; }
  /// The next slot. None: it isn't free.
  std::optional<RemoteHeap::Target> next(u32 process) const;
  /// Notes that a write to it has begun. Returns its number.
  u32 begin(u32 process);
  /// Notes that so many slots were let go of there. Ignored if it is older than what is known.
  /// \throws Error(peer_lost)
  void freed(u32 process, u32 count);

  // -- in this process
  /// The bytes written in the next slot, which is let go of with `keep`.
  /// \throws Error(peer_lost) if it isn't that one, or not so large
  Payload take(u32 process, u32 slot, u64 bytes);
  /// The number of slots let go of.
  u32 freed_for(u32 process) const { return peers_[process].ours.freed; }
  /// Notes that the other process knows of so many, or will.
  void told(u32 process, u32 count) { peers_[process].ours.told = count; }
  /// True if the other process may wait to be told.
  bool news(u32 process) const;

 private:
  struct Theirs {
    net::RemoteMemory memory{};
    u64 offset = 0;  // of the first slot
    u32 slots = 0;
    u32 begun = 0, freed = 0;  // in total
  };
  struct Ours {
    char* memory = nullptr;
    u32 slots = 0;
    u32 taken = 0, freed = 0, told = 0;  // in total
    std::vector<bool> let_go;            // by slot; waits for slots taken earlier
  };
  struct Peer {
    Theirs theirs;
    Ours ours;
  };
  std::string offer(net::Engine& engine, ProcessGroup const& group);
  static void let_go(Ours& ours, u32 slot);

  Layout const& layout_;
  Allocation memory_;
  std::vector<Peer> peers_;  // by process
};

}  // namespace meshpost::detail
