#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rma/via/access.hpp"
#include "rma/via/proxy/remote_heap.hpp"

namespace meshpost::detail {

/// Slots of pinned memory, into which engines write long bytes for devices whose memory they can't
/// write to: this process's own, some for each process that may write, and those of others that
/// are for this process. One thread at a time.
///
/// Of a pair of processes, writes take the slots in turn, in the order of their messages. So the
/// writer knows by a count which are free, and the reader which slot is next. The reader lets go
/// of a slot when its bytes have been copied on, and each message tells the writer how many have
/// been let go of, in the order in which they were taken: a slot is written again only after that.
///
/// Whoever has no free slot waits, for the reader's proxy and its copy engine alone: no rank is
/// needed there (Access::deliver), and none here. When all slots are used, at least half of them
/// have not been told of once they are let go, and then the reader sends a message for that (news).
class Staging {
 public:
  /// As much as is read of a device at once. Shorter pieces cost more in messages and in copies
  /// that are started; of longer ones less is under way at both ends at once.
  static constexpr u64 slot_bytes = Access::largest;
  /// Of a pair of processes. One is written, one is summed, one is copied on: as many again until
  /// the writer has heard. A power of two, so that counts may wrap.
  static constexpr u32 most_slots = 8;
  /// In a process: for more than 16 others each has fewer slots, for more than 128 none.
  static constexpr u64 most_memory = u64{64} << 20;

  Staging(Layout const& layout, u32 processes) : layout_(layout), peers_(processes) {}

  /// Own slots, and what is known of those of others. Collective. Where a process has none to
  /// offer, it is sent messages.
  void join(net::Engine& engine, ProcessGroup const& group);

  // -- in others
  bool offered_by(u32 process) const { return peers_[process].theirs.slots != 0; }
  /// The next slot. None: it isn't free.
  std::optional<RemoteHeap::Target> next(u32 process) const;
  /// A write to it has begun. Its number.
  u32 begin(u32 process);
  /// So many have been let go of there; older news than is known says nothing.
  /// \throws Error(peer_lost)
  void freed(u32 process, u32 count);

  // -- in this process
  /// What is written in the next slot. It is let go of with `keep`.
  /// \throws Error(peer_lost) if it isn't that one, or not so large
  Payload take(u32 process, u32 slot, u64 bytes);
  /// How many have been let go of.
  u32 freed_for(u32 process) const { return peers_[process].ours.freed; }
  /// That many are known there, or will be.
  void told(u32 process, u32 count) { peers_[process].ours.told = count; }
  /// It may wait to be told.
  bool news(u32 process) const;

 private:
  struct Theirs {
    net::RemoteMemory memory{};
    u64 offset = 0;  // of the first slot
    u32 slots = 0;
    u32 begun = 0, freed = 0;  // of all times
  };
  struct Ours {
    char* memory = nullptr;
    u32 slots = 0;
    u32 taken = 0, freed = 0, told = 0;  // of all times
    std::vector<bool> let_go;            // by slot; not before one that was taken earlier
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
