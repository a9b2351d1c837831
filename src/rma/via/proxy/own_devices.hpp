#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/rma/proxy_request.hpp"
#include "meshpost/world/layout.hpp"
#include "rma/via/access.hpp"

namespace meshpost::detail {

/// The devices of this process, as the proxy knows them: their ranks' requests, and the way to
/// their memory.
///
/// Of a run that went well nothing is left: its ranks have ended, all that they asked for was taken
/// from the rings and has arrived, and commands that no rank had carried out the host has
/// (Access::end). So the next run goes on in rings and command queues where that one ended: a slot
/// or a command is known by its number, which no earlier one in its place has had.
class OwnDevices {
 public:
  explicit OwnDevices(Layout const& layout) : layout_(layout) {}
  /// Once; what may fail in one process alone.
  void make();

  /// What the ranks of an own device need.
  RequestRing ring(u32 own) const;
  Access& access(u32 own) const { return *own_[own].access; }
  /// By local rank: what it waits for.
  u32* done(u32 own, u32 local_rank) const { return own_[own].done.as<u32>() + local_rank; }
  u32 count() const { return static_cast<u32>(own_.size()); }

  void begin_run();
  /// Of a run that went well, or not. What a device throws is thrown when all have been told.
  void end_run(bool well);
  /// The run has failed.
  void drop();

  /// The next request of that device's ranks; null: there is none. It stays until pass().
  RequestRecord const* next(u32 own) const;
  void pass(u32 own);
  /// Whether all rings are empty. Any thread.
  bool rings_are_empty() const;

  /// Ranks on devices in the host's memory are about to leave: what they have asked for is
  /// withdrawn, so that from now on nobody reads or writes memory of theirs that ends with them.
  /// Any thread; waits for the copy of one piece, and never for the engine.
  void withdraw();
  /// Does `work`, which reads or writes memory of the own device's ranks, unless it was withdrawn.
  template <class Work>
  void with_memory_of_ranks(u32 own, Work&& work) {
    if (!layout_.devices[own]->in_host_memory()) return work();  // a kernel frees no memory there
    std::scoped_lock const lock(of_ranks_);
    if (!withdrawn_) work();
  }

  template <class Condition>
  bool all(Condition&& condition) const {
    for (auto const& own : own_)
      if (!condition(*own.access)) return false;
    return true;
  }

 private:
  struct Own {
    Allocation records, words, tail, done, far, stages;
    std::unique_ptr<Access> access;
    u32 taken = 0;
    u32* head() const { return words.as<u32>(); }
    u32* seen() const { return words.as<u32>() + 32; }  // in another cache line
    RequestRecord const* ready(u32 address) const;
  };
  void begin_anew();

  Layout const& layout_;
  std::vector<Own> own_;
  bool in_order_ = false;  // rings and accesses are as a run that went well has left them
  // Held while memory of ranks on devices in the host's memory is read or written. Below the
  // driver's, and never held in the engine: whoever hangs there, or comes back late, finds it
  // withdrawn.
  std::mutex of_ranks_;
  bool withdrawn_ = false;  // guarded by it
};

}  // namespace meshpost::detail
