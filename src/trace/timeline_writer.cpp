#include "trace/timeline_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fork.hpp"
#include "base/host_hooks.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost::trace {
namespace {

namespace fs = std::filesystem;
using WriterClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds shortest_pause{100};
constexpr int pause_per_work = 9;  // at most a tenth of a core

/// Returns 0 or errno.
int write_text(fs::path const& file, std::string_view text) {
  std::FILE* const out = std::fopen(file.c_str(), "we");
  if (!out) return errno;
  int const failed = std::fwrite(text.data(), 1, text.size(), out) == text.size() ? 0 : errno;
  return std::fclose(out) == 0 || failed != 0 ? failed : errno;
}

/// Returns 0 or errno.
int replace_file(fs::path file, std::string_view text) {
  static std::atomic<u32> number{0};
  std::error_code error;
  auto const status = fs::status(file, error);
  // A pipe or a terminal is written, not replaced.
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_text(file, text);
  // A symbolic link stays: the file that it names is replaced.
  if (auto named = fs::canonical(file, error); !error) file = std::move(named);
  auto beside = file;
  beside += fmt::format(".{}.{}.part", getpid(), number.fetch_add(1));
  int failed = write_text(beside, text);
  if (failed == 0 && std::rename(beside.c_str(), file.c_str()) != 0) failed = errno;
  if (failed == 0) return 0;
  std::remove(beside.c_str());
  // In a folder where no new file can be created, the file itself may be writable.
  return failed == EACCES && fs::exists(status) ? write_text(file, text) : failed;
}

void warn_of(std::string const& file, std::string_view why) {
  warn(
      fmt::format("the timeline could not be written to '{}': {}; check the folder and the "
                  "space that is left, or name another file",
                  file, why));
}

}  // namespace

void TimelineWriter::write_file(std::string const& file, std::string_view text) {
  if (int const number = replace_file(file, text); number != 0)
    warn_of(file, std::generic_category().message(number));
}

// Never destroyed: its thread may use it as long as the process lives.
TimelineWriter& TimelineWriter::of_process() {
  static auto* const one = [] {
    // For programs that leave by exit() while a World lives.
    std::atexit([] {
      if (!is_forked()) of_process().finish();
    });
    return new TimelineWriter;
  }();
  return *one;
}

void TimelineWriter::write(std::string const& file, Collect collect) {
  Collect dropped;
  Lock lock(mutex_);
  await_others(lock, file);
  if (auto const found = put_off_.find(file); found != put_off_.end()) {
    dropped = std::move(found->second);
    put_off_.erase(found);
  }
  write_one(lock, file, std::move(collect));
  lock.unlock();  // before `dropped` is destroyed
}

void TimelineWriter::put_off(std::string const& file, Collect collect) {
  bool wakes = false;
  {
    std::scoped_lock const lock(mutex_);
    if (!has_thread_) has_thread_ = start_thread();
    put_off_[file].swap(collect);
    wakes = thread_sleeps_;
  }
  if (wakes) changed_.notify_all();
}

// If there are too many threads, finish() writes, or a thread that can be started later.
bool TimelineWriter::start_thread() try {
  hooks::at("start a thread to write timelines");
  std::thread([this] { work(); }).detach();
  return true;
} catch (std::system_error const&) {
  return false;
}

void TimelineWriter::finish() noexcept try {
  Lock lock(mutex_);
  std::set<std::string> files = being_written_;
  for (auto const& [file, collect] : put_off_) files.insert(file);
  for (auto const& file : files) write_put_off(lock, file);
} catch (std::exception const& error) {
  warn(fmt::format("timelines could not be written: {}", error.what()));
}

void TimelineWriter::work() {
  Lock lock(mutex_);
  for (;;) {
    thread_sleeps_ = true;
    changed_.wait(lock, [this] { return !put_off_.empty(); });
    thread_sleeps_ = false;
    auto const begin = WriterClock::now();
    // Timelines that come meanwhile are written after the pause.
    for (auto left = put_off_.size(); left > 0 && !put_off_.empty(); --left) try {
        write_put_off(lock, std::string(put_off_.begin()->first));
      } catch (std::bad_alloc const&) {
        break;  // tried again after the pause, and by finish()
      }
    auto const pause = std::max<WriterClock::duration>(
        shortest_pause, pause_per_work * (WriterClock::now() - begin));
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
  }
}

// Nobody takes a timeline out before its turn. So the timeline written last is the latest one.
void TimelineWriter::write_put_off(Lock& lock, std::string const& file) {
  await_others(lock, file);
  auto const found = put_off_.find(file);
  if (found == put_off_.end()) return;
  auto collect = std::move(found->second);
  put_off_.erase(found);
  write_one(lock, file, std::move(collect));
}

void TimelineWriter::await_others(Lock& lock, std::string const& file) {
  changed_.wait(lock, [&] { return !being_written_.contains(file); });
}

void TimelineWriter::write_one(Lock& lock, std::string const& file, Collect collect) {
  auto const mine = being_written_.insert(file).first;
  lock.unlock();
  try {
    hooks::at("write a timeline");
    auto const timeline = collect();
    collect = {};  // from here on a run may record in that memory
    if (int const number = replace_file(file, to_perfetto(timeline)); number != 0)
      warn_of(file, std::generic_category().message(number));
  } catch (std::exception const& error) {
    warn_of(file, error.what());
  }
  collect = {};
  lock.lock();
  being_written_.erase(mine);
  changed_.notify_all();
}

}  // namespace meshpost::trace
