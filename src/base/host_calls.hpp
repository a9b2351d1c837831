#pragma once
#include <atomic>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

#include "meshpost/base/types.hpp"

// Calls of the host, for tools that observe them: the report of host waits and the host's timeline.

namespace meshpost {

enum class HostCallKind : u8 {
  queue,   ///< puts an operation on a stream, and returns
  launch,  ///< puts a run or work of the user on devices, and returns
  wait,    ///< returns when work of devices is done
  write,   ///< sends from the host; waits for the runs that were launched before
  read,    ///< receives on the host, or waits for a notification
  notify,  ///< sends from the host, and returns at once
  other    ///< makes or frees something, and waits for runs
};

/// True if such a call may wait for devices.
constexpr bool waits(HostCallKind kind) {
  return kind != HostCallKind::queue && kind != HostCallKind::launch &&
         kind != HostCallKind::notify;
}

/// A call that has returned.
struct HostCallRecord {
  HostCallKind kind;
  std::string operation;  ///< as in "put_notify"
  std::string subject;    ///< as in "stream 'left' of cuda:0"; may be empty
  std::source_location where;
  u64 begin, end;  ///< ns of the steady clock
};

/// Called by: the thread that made the call, so by several at once. May not make such calls.
class HostObserver {
 public:
  virtual ~HostObserver() = default;
  virtual void called(HostCallRecord const& call) = 0;
};

/// From here on `observer` sees all calls of the process, until it is removed. Thread-safe.
void add_host_observer(std::shared_ptr<HostObserver> const& observer);
/// When it returns, `observer` is not called any more. Thread-safe.
void remove_host_observer(std::shared_ptr<HostObserver> const& observer);
/// Gives `call` to all observers. It throws nothing: a call that is lost is missing in a report.
void tell_host_observers(HostCallRecord const& call) noexcept;

inline std::atomic<u32> host_observers{0};
inline bool host_is_observed() { return host_observers.load(std::memory_order_relaxed) != 0; }
u64 host_clock_ns();

/// Stands at the beginning of a public call of the host. Calls that it makes itself are parts of
/// it. Without observers it costs one relaxed load.
class HostCall {
 public:
  HostCall(HostCallKind kind, char const* operation, std::source_location where)
      : where_(where), operation_(operation), kind_(kind) {
    if (host_is_observed()) begin();
  }
  HostCall(HostCall const&) = delete;
  HostCall& operator=(HostCall const&) = delete;
  ~HostCall() {
    if (observed_) end();
  }
  /// `make` returns the subject as text. It is called only if somebody observes.
  template <class Make>
  void about(Make&& make) {
    if (begin_ != 0) subject_ = std::forward<Make>(make)();
  }

 private:
  void begin();
  void end() noexcept;

  std::source_location where_;
  char const* operation_;
  std::string subject_;
  u64 begin_ = 0;  // 0: another call of this thread made this one
  HostCallKind kind_;
  bool observed_ = false;
};

/// While it lives, calls of this thread are parts of the library's own work.
class HidesHostCalls {
 public:
  HidesHostCalls();
  HidesHostCalls(HidesHostCalls const&) = delete;
  HidesHostCalls& operator=(HidesHostCalls const&) = delete;
  ~HidesHostCalls();
};

}  // namespace meshpost
