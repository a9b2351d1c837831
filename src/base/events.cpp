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
    std::fflush(stdout);  // a log must survive whatever ends the process next
  }
};

struct Slot {
  std::mutex mutex;
  std::shared_ptr<EventSink> sink = console();
};

Slot& slot() {
  static Slot one;
  return one;
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

}  // namespace meshpost
