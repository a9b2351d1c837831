#pragma once
#include <functional>
#include <memory>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// Threads that process pieces of work together. All copies of the library on the host, and those
/// that calibration measures, go through one of these.
///
/// Called by: any thread, several at once: they share the threads. A caller takes pieces itself, so
/// it never waits for a thread that is busy elsewhere.
class ThreadTeam {
 public:
  /// `threads` includes the caller: 1 has no threads of its own. There are fewer if the system
  /// gives no more.
  explicit ThreadTeam(u32 threads);
  ~ThreadTeam();
  ThreadTeam(ThreadTeam const&) = delete;
  ThreadTeam& operator=(ThreadTeam const&) = delete;

  u32 threads() const;
  /// Calls work(0) to work(pieces - 1) in any order on any of the threads, and returns when all
  /// have returned. Their stores are visible to the caller. \throws the first exception of them,
  /// when all have ended
  void each(u64 pieces, std::function<void(u64)> const& work);
  /// memcpy, in the fastest known way on this machine. The two must not overlap. If the team's
  /// threads are late, the caller copies alone for a while.
  void copy(void* target, void const* source, Bytes size);
  void copy(void* target, void const* source, Bytes size, HostWay way);

  /// The library's own team: one thread for each usable core, at most 16. More don't make memory
  /// faster.
  static ThreadTeam& shared();

 private:
  void copy_slices(void* target, void const* source, u64 size, HostWay way,
                   std::function<void()> const& done);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshpost::fabric
