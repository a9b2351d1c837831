#pragma once
#include "meshpost/device/report.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// Operations that a rank repeats with the same arguments. They are checked and looked up once,
// before the loop. MPI calls such operations persistent.

namespace meshpost {

class Rank;

/// A put_notify() or notify() that its rank sends again and again. Made by
/// Rank::prepare_put_notify() and Rank::prepare_notify(), sent by Rank::put_notify(). A value:
/// copies send the same. Only the rank that made it may send it, in the run in which it made it.
/// Another rank's is an error, and so is that of a freed window. One of an earlier run is not
/// noticed otherwise.
class PreparedPut {
 public:
  PreparedPut() = default;

 private:
  friend class Rank;
  via::Location to_;  // its counters are those of the window that is notified
  void* target_ = nullptr;
  void const* source_ = nullptr;
  u64 bytes_ = 0;
  u32 world_ = 0, rank_ = Note::no_rank;  // that made it
  u32 window_ = 0, notified_ = 0;         // numbers of the target's, and of that with the counter
  Tag tag_{0};
  bool copies_ = false;
  bool direct_ = false;  // it certainly goes by loads and stores, without timeline and lanes
};

/// A wait() that its rank repeats. Made by Rank::prepare_wait(), used by Rank::wait(). A value, for
/// the rank and the run that a PreparedPut is for.
class PreparedWait {
 public:
  PreparedWait() = default;

 private:
  friend class Rank;
  AwaitedCount awaited_{};
  Note note_;
  u32 world_ = 0, rank_ = Note::no_rank;  // that made it
  bool direct_ = false;                   // without timeline and lanes
};

}  // namespace meshpost
