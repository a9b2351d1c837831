#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "meshpost/trace/timeline.hpp"

namespace meshpost::trace {

/// Writes the timelines of all Worlds of this process. One object for all, so that Worlds which
/// name the same file write it one after the other. Thread-safe.
///
/// A file that can't be written is warned of. A reader sees either the old file or the new one,
/// never a part: the text is written to a file beside it, which then takes its name.
class TimelineWriter {
 public:
  /// Reads what the ranks have recorded. It is called once, without a lock of the writer, and then
  /// destroyed.
  using Collect = std::function<Timeline()>;

  static TimelineWriter& of_process();
  TimelineWriter() = default;
  TimelineWriter(TimelineWriter const&) = delete;
  TimelineWriter& operator=(TimelineWriter const&) = delete;

  /// Returns when the file is written, by the calling thread. What was put off for the same file is
  /// dropped: nobody would see it.
  void write(std::string const& file, Collect collect);
  /// Returns at once. A thread writes the file soon; until it begins to, a later timeline of the
  /// same file takes the place of this one. The thread pauses between two writes, so that it takes
  /// at most about a tenth of a core.
  void put_off(std::string const& file, Collect collect);
  /// Returns when all that was put off before is written: what the thread has not begun, the caller
  /// writes.
  void finish() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  bool start_thread();
  void work();
  void write_put_off(Lock& lock, std::string const& file);
  void write_one(Lock& lock, std::string const& file, Collect collect);
  void await_others(Lock& lock, std::string const& file);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Collect> put_off_;  // by file
  std::set<std::string> being_written_;
  bool has_thread_ = false, thread_sleeps_ = false;
};

}  // namespace meshpost::trace
