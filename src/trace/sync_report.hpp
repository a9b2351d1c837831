#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/host_calls.hpp"

namespace meshpost::trace {

/// Finds where a thread of the host waits between two operations that it queues on devices. Such a
/// wait stops the queue: the devices have nothing to do until the thread has queued more. A wait
/// behind the last operation is none.
class SyncReport : public HostObserver {
 public:
  static constexpr u64 most_places = 100;

  /// Counts Worlds that want a report: the first one switches it on, the last one off.
  static void switch_on();
  /// Gives what was found so far to warn(), a line for each place.
  static void switch_off();

  void called(HostCallRecord const& call) override;
  /// The lines, those with the longest times first, at most most_places. Forgets them.
  std::vector<std::string> take();

 private:
  struct Place {
    std::string operation;
    std::source_location where;
  };
  struct Wait {
    Place place;
    std::string subject;
    u64 length;
  };
  struct Thread {
    std::optional<Place> last;  // operation that it queued
    std::vector<Wait> waits;    // since then
  };
  struct Found {
    u64 count = 0, total = 0, worst = 0;  // ns
  };
  /// Subject, the wait, the operation before it, the one behind it.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  void queued(Thread& thread, Place const& next);

  std::mutex mutex_;
  std::map<std::thread::id, Thread> threads_;
  std::map<Key, Found> found_;
};

}  // namespace meshpost::trace
