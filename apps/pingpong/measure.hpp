#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "common/team.hpp"
#include "meshpost/base/types.hpp"

namespace pingpong {

using meshpost::u32;
using meshpost::u64;

/// The driver of a loop: it launches kernels, moves bytes and waits for them.
enum class Mode {
  host,    ///< the host: it waits for each kernel, and copies
  stream,  ///< streams: the host puts all on them, and waits at the end
  kernel   ///< ranks of one run
};
inline constexpr Mode all_modes[] = {Mode::host, Mode::stream, Mode::kernel};
/// "host", "stream", "kernel".
std::string name(Mode mode);

/// One run of a loop.
struct Took {
  double seconds = 0;
  double cpu = 0;     ///< of all threads of the process
  double queued = 0;  ///< until the slowest host thread had put all on its stream; else 0
};

/// The same over repetitions, for one turn of the loop.
struct Times {
  double median = 0, least = 0, lower = 0, upper = 0;  ///< seconds; the others: quartiles
  double cpu = 0, queued = 0;                          ///< means
};

/// Runs a loop of `turns` turns once without counting it, then `repetitions` times.
Times measure(u32 repetitions, u32 turns, std::function<Took()> const& run);

/// User and system time of this process so far, seconds.
double cpu_seconds();

/// A message that one thread of the host announces to another one. That one polls, as MPI does.
class Flag {
 public:
  void raise(u32 value) { value_.store(value, std::memory_order_release); }
  u32 value() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<u32> value_{0};
};

/// Threads of the host, one for each device, as a program has processes.
class Hosts {
 public:
  explicit Hosts(u32 count) : team_(count), queued_(count) {}

  /// Calls work(host) on all threads, which begin together. If one throws, await() of the others
  /// throws too. \throws what the first one threw
  Took run(std::function<void(u32)> const& work);
  /// For `work`: returns when the flag has this value or a later one.
  void await(Flag const& flag, u32 value) const;
  /// For `work`: this host has put all its work on its stream.
  void all_queued(u32 host);

 private:
  void fail();

  meshpost::blas::Team team_;
  std::atomic<u32> ready_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr first_;
  double begin_ = 0, cpu_ = 0;
  std::vector<double> queued_;
};

}  // namespace pingpong
