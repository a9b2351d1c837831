#pragma once
#include <meshpost/base/events.hpp>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace meshpost::test {

/// Keeps the library's messages instead of printing them, for the life of this object.
class Listener {
 public:
  Listener() : before_(set_event_sink(sink_)) {}
  ~Listener() { set_event_sink(before_); }
  Listener(Listener const&) = delete;
  Listener& operator=(Listener const&) = delete;

  std::vector<std::string> warnings() const { return sink_->copy(sink_->warnings); }
  std::vector<std::pair<unsigned, std::string>> lines() const { return sink_->copy(sink_->lines); }

 private:
  struct Sink : EventSink {
    void warning(std::string_view text) override {
      std::scoped_lock const lock(mutex);
      warnings.emplace_back(text);
    }
    void log(unsigned rank, std::string_view text) override {
      std::scoped_lock const lock(mutex);
      lines.emplace_back(rank, text);
    }
    template <class T>
    T copy(T const& what) {
      std::scoped_lock const lock(mutex);
      return what;
    }
    std::mutex mutex;
    std::vector<std::string> warnings;
    std::vector<std::pair<unsigned, std::string>> lines;
  };
  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  std::shared_ptr<EventSink> before_;
};

}  // namespace meshpost::test
