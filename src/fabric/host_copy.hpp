#pragma once
#include <functional>
#include <memory>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// Threads that work through the pieces of something together. What the library copies on the host,
/// and what calibration measures, goes through one of these.
///
/// Called by: any thread, several at once: they share the threads. A caller takes pieces itself, so
/// that it never waits for a thread that is busy elsewhere.
class ThreadTeam {
 public:
  /// `threads` with the caller: 1 has no threads of its own. Fewer where the system gives no more.
  explicit ThreadTeam(u32 threads);
  ~ThreadTeam();
  ThreadTeam(ThreadTeam const&) = delete;
  ThreadTeam& operator=(ThreadTeam const&) = delete;

  u32 threads() const;
  /// Calls work(0) to work(pieces - 1) in any order on any of the threads, and returns when all
  /// have returned: what they wrote is visible to the caller. \throws what the first of them threw,
  /// when all have ended
  void each(u64 pieces, std::function<void(u64)> const& work);
  /// memcpy, in the way that is the fastest on this machine, as far as that is known. The two must
  /// not overlap. Where the team's threads are late, the caller copies alone for a while.
  void copy(void* target, void const* source, Bytes size);
  void copy(void* target, void const* source, Bytes size, HostWay way);

  /// The library's own: one thread a usable core, 16 at most, for more don't make memory faster.
  static ThreadTeam& shared();

 private:
  void copy_slices(void* target, void const* source, u64 size, HostWay way,
                   std::function<void()> const& done);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshpost::fabric
