#include "meshpost/base/events.hpp"

#include <cstdio>
#include <mutex>
#include <utility>

namespace meshpost {
namespace {

class Console : public EventSink {
 public:
  void warning(std::string_view text) override {
    std::fprintf(stderr, "meshpost: warning: %.*s\n", static_cast<int>(text.size()), text.data());
  }
  void log(unsigned rank, std::string_view text) override {
    std::printf("[rank %u] %.*s\n", rank, static_cast<int>(text.size()), text.data());
    std::fflush(stdout);  // a log must survive a crash of the process
  }
};

struct Slot {
  std::mutex mutex;
  std::shared_ptr<EventSink> sink = console();
};

// Messages may come after main, when a sink of the user's may be gone. The console takes them then.
Slot& slot() {
  static auto* const one = new Slot;
  static struct AtExit {
    AtExit() = default;
    AtExit(AtExit const&) = delete;
    AtExit& operator=(AtExit const&) = delete;
    ~AtExit() { set_event_sink(nullptr); }
  } const at_exit;
  return *one;
}

}  // namespace

std::shared_ptr<EventSink> console() { return std::make_shared<Console>(); }

std::shared_ptr<EventSink> event_sink() {
  std::scoped_lock const lock(slot().mutex);
  return slot().sink;
}

std::shared_ptr<EventSink> set_event_sink(std::shared_ptr<EventSink> sink) {
  if (!sink) sink = console();
  std::scoped_lock const lock(slot().mutex);
  return std::exchange(slot().sink, std::move(sink));
}

// Warnings come up anywhere, also where all processes of a job must continue together. So this
// never throws.
void warn(std::string_view text) {
  try {
    event_sink()->warning(text);
  } catch (...) {
    Console().warning(text);
  }
}

}  // namespace meshpost
