#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/rma/proxy_request.hpp"
#include "meshpost/world/layout.hpp"
#include "rma/via/access.hpp"

namespace meshpost::detail {

/// The devices of this process for the proxy: their ranks' requests, and the way to their memory.
///
/// A run that went well leaves nothing. Its ranks have ended, all their requests were taken from
/// the rings and have arrived, and the remaining commands were carried out (Access::end). So the
/// next run continues in rings and command queues where that one ended. A slot or a command is
/// known by its number, which no earlier one in its place has had.
class OwnDevices {
 public:
  explicit OwnDevices(Layout const& layout) : layout_(layout) {}
  /// Once. It may fail in one process alone.
  void make();

  /// The ring of the ranks of an own device.
  RequestRing const& ring(u32 own) const { return own_[own].ring; }
  Access& access(u32 own) const { return *own_[own].access; }
  /// By local rank: the counter of its answered requests that are done.
  u32* done(u32 own, u32 local_rank) const { return own_[own].done.as<u32>() + local_rank; }
  u32 count() const { return static_cast<u32>(own_.size()); }

  void begin_run();
  /// Of a run that went well, or not. A device's error is thrown after all devices have ended the
  /// run.
  void end_run(bool well);
  /// The run has failed.
  void drop();

  /// The next request of that device's ranks; null: there is none. It stays until pass().
  RequestRecord const* next(u32 own) const;
  /// The bytes that came with it.
  char const* bytes_of_next(u32 own) const { return own_[own].ring.bytes.of(own_[own].taken); }
  void pass(u32 own);
  /// True if all rings are empty. Any thread.
  bool rings_are_empty() const;

  /// Ranks on devices in the host's memory are about to leave. Withdraws their requests: from now
  /// on nobody reads or writes those ranks' own memory, which ends with them. Any thread; waits for
  /// the copy of one piece, and never for the engine.
  void withdraw();
  /// Calls `work`, which reads or writes memory of the own device's ranks, unless it was withdrawn.
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
    Allocation records, bytes, words, tail, done, far, stages;
    std::unique_ptr<Access> access;
    RequestRing ring;
    u32 taken = 0;  // of its records
  };
  void begin_anew();

  Layout const& layout_;
  std::vector<Own> own_;
  bool in_order_ = false;  // rings and accesses are in the state after a run that went well
  // Held while memory of ranks on devices in the host's memory is read or written. Taken inside the
  // driver's mutex, and never held in the engine. So a thread that hangs there, or comes back late,
  // finds the memory withdrawn.
  std::mutex of_ranks_;
  bool withdrawn_ = false;  // guarded by it
};

}  // namespace meshpost::detail
