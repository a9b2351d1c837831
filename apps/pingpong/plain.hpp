#pragma once
// Plain work on a stream: a kernel of known time, and what keeps the queue of a stream short.
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace pingpong {

using meshpost::u32;
using meshpost::u64;

/// A kernel that takes `nanoseconds` and then adds `addend` to the first byte of a message. So a
/// message shows if the kernel came before the put and behind the wait. One block of threads.
struct Spin {
  u64 nanoseconds;
  unsigned char* first;
  unsigned char addend;

  MESHPOST_FN void operator()(u64 thread, u64) const {
    u64 const begin = meshpost::memory::clock_ns();
    while (meshpost::memory::clock_ns() - begin < nanoseconds) {
    }
    if (thread == 0) *first = static_cast<unsigned char>(*first + addend);
  }
};

/// Keeps the number of operations that wait in a stream below some 800. CUDA's queue of a stream
/// has room for about 1000. A call that finds it full blocks, and calls to other streams of the GPU
/// may block behind it. This stream may wait for work of those streams: a deadlock.
class Throttle {
 public:
  explicit Throttle(meshpost::Stream& stream) : stream_(stream) {}
  /// Says that `operations` were put on the stream. The host sleeps if the stream is far behind.
  void count(u32 operations) {
    if ((since_ += operations) < most) return;
    since_ = 0;
    while (last_ && !last_->done()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    last_ = stream_.record();
  }

 private:
  static constexpr u32 most = 400;
  meshpost::Stream& stream_;
  std::shared_ptr<meshpost::Event> last_;
  u32 since_ = 0;
};

/// Returns when the endpoint's work is done. The host sleeps meanwhile: a function in the stream
/// wakes it. (synchronize() alone polls, on a GPU.) \throws Error: as StreamEndpoint::synchronize
inline void finish(meshpost::StreamEndpoint& end) {
  auto const ended = std::make_shared<std::promise<void>>();
  auto const wait = ended->get_future();
  end.stream().call([ended] { ended->set_value(); });
  wait.wait();
  end.synchronize();
}

}  // namespace pingpong
