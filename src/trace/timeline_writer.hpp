#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "meshpost/trace/timeline.hpp"

namespace meshpost::trace {

/// Writes the timelines of all Worlds of this process. There is one object for all, so that Worlds
/// that name the same file write it one after the other. Thread-safe.
///
/// If a file can't be written, there is a warning. A reader sees either the old file or the new
/// one, never a part. For this the text is written to a file beside it, which then takes its name.
class TimelineWriter {
 public:
  /// Reads the records of the ranks. It is called once, without a lock of the writer, and then
  /// destroyed.
  using Collect = std::function<Timeline()>;

  /// Replaces the file by `text`, at once.
  static void write_file(std::string const& file, std::string_view text);

  static TimelineWriter& of_process();
  TimelineWriter() = default;
  TimelineWriter(TimelineWriter const&) = delete;
  TimelineWriter& operator=(TimelineWriter const&) = delete;

  /// Writes the file on the calling thread. Timelines that were put off for the same file are
  /// dropped: nobody would see them.
  void write(std::string const& file, Collect collect);
  /// Returns at once. A thread writes the file soon. Until it begins, a later timeline of the same
  /// file replaces this one. The thread pauses between two writes, so that it takes at most about a
  /// tenth of a core.
  void put_off(std::string const& file, Collect collect);
  /// Returns when all timelines that were put off before are written. The caller writes those that
  /// the thread has not begun.
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
