#pragma once
#include <atomic>
#include <mutex>
#include <vector>

#include "world/process_group.hpp"

namespace meshpost::copying {

/// Keeps copies out of memory that is released, and its owner waiting while copies are inside: for
/// each exposed part a word that says whether it may be copied from and to, and for each process of
/// the node how many of its threads do. In memory that all processes of the node share.
///
/// enter() raises its count, then reads the word. close() clears the word, then reads the counts.
/// Both are sequentially consistent, so at least one of the two sees the other: either the copy is
/// refused, or the owner waits for it. A count's fall releases what the copy did to the owner,
/// which acquires it.
class AccessEpochs {
 public:
  /// Collective.
  explicit AccessEpochs(ProcessGroup const& group);
  ~AccessEpochs();
  AccessEpochs(AccessEpochs const&) = delete;
  AccessEpochs& operator=(AccessEpochs const&) = delete;

  static constexpr u32 slots = 1024;  ///< parts that a process may expose at a time
  /// A slot of this process, still closed. \throws Error(out_of_memory) if all are in use
  u32 take();
  /// Lets copies of exposure `number` (not 0) in.
  void open(u32 slot, u32 number);
  /// Returns when nobody is inside, and none will be. The slot is free.
  void close(u32 slot);

  /// True if a copy may begin in a process of this node. Then leave() must follow.
  bool enter(u32 process, u32 slot, u32 number);
  void leave(u32 process, u32 slot);

 private:
  struct Words {
    std::atomic<u32>* open;
    std::atomic<u32>* inside;  // by process
  };
  Words words(u32 process, u32 slot) const;

  ProcessGroup const& group_;
  u64 pitch_ = 0, size_ = 0;  // bytes of a slot, and of a process's slots
  std::vector<char*> maps_;   // by process; null: another node
  std::mutex mutex_;
  std::vector<bool> taken_;
};

/// While it lives, a copy is inside, or was refused.
class AccessEpoch {
 public:
  AccessEpoch(AccessEpochs& epochs, u32 process, u32 slot, u32 number)
      : epochs_(epochs),
        process_(process),
        slot_(slot),
        inside_(epochs.enter(process, slot, number)) {}
  ~AccessEpoch() {
    if (inside_) epochs_.leave(process_, slot_);
  }
  AccessEpoch(AccessEpoch const&) = delete;
  AccessEpoch& operator=(AccessEpoch const&) = delete;
  explicit operator bool() const { return inside_; }

 private:
  AccessEpochs& epochs_;
  u32 process_, slot_;
  bool inside_;
};

}  // namespace meshpost::copying
