#pragma once
#include <deque>
#include <memory>
#include <string>

#include "meshpost/device/device.hpp"
#include "trace/host_timeline.hpp"

namespace meshpost::detail {

/// When a stream began and ended its operations. It stores its clock before and after each, in
/// pinned memory. Operations of a stream that is captured have no times: a graph repeats them.
class StreamTimes {
 public:
  /// `capacity`: operations to keep.
  StreamTimes(Device& device, u32 capacity);

  /// Around what is queued while it lives. `times`: null if there is no timeline.
  class Around {
   public:
    Around(StreamTimes* times, Stream& stream, std::string_view name, char const* category,
           u64 bytes)
        : times_(times), stream_(stream) {
      if (times_) end_ = times_->begin(stream_, name, category, bytes);
    }
    Around(Around const&) = delete;
    Around& operator=(Around const&) = delete;
    ~Around() {
      if (end_) times_->store(stream_, end_);
    }

   private:
    StreamTimes* times_;
    Stream& stream_;
    u64* end_ = nullptr;
  };

  /// Notes an operation, and stores its begin. Returns the word for its end, null if it has none.
  u64* begin(Stream& stream, std::string_view name, char const* category, u64 bytes);
  /// Stores the end of an operation. If the device refuses, the operation has no end.
  static void store(Stream& stream, u64* word) noexcept;

  /// The row, when the work of the stream is over. `offset` leads to the host's clock. The calls
  /// that follow find nothing.
  trace::StreamRow take(std::string device, std::string name, i64 offset);

 private:
  u32 const capacity_;
  Allocation words_;  // begin and end of each
  std::deque<trace::StreamSpan> spans_;
  u64 lost_ = 0;
};

}  // namespace meshpost::detail
