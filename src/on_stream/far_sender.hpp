#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "on_stream/destination.hpp"

namespace meshpost::detail {

/// Carries out the messages of a GPU's stream to targets out of its reach: a thread of its own
/// takes them from a ring that the stream fills. So a target that is slow holds up no other stream.
/// Its numbers are in the device's memory and the ring, so a CUDA graph may hold such messages.
class FarSender {
 public:
  /// `failed`: called by the thread; later messages are then dropped.
  FarSender(Device& device, FarMemory const& memory,
            std::function<void(std::exception_ptr)> failed);
  ~FarSender();
  FarSender(FarSender const&) = delete;
  FarSender& operator=(FarSender const&) = delete;

  StreamRing const& ring() const { return ring_; }
  /// The number of a target, which stays for as long as the sender lives.
  u32 number_of(FarTarget const& target);
  /// Behind all work of the stream: returns when everything it posted has been carried out.
  void drain();
  /// Where that can't be asked: carries out no more, and returns when it uses no World.
  void abandon();
  void take_again() { drops_ = false; }

 private:
  void work();
  bool look(u32 number);
  void carry_out(u32 number);
  void end_first();
  void end_answered();
  void drop_rest();
  FarTarget const& target(u32 number);

  Device& device_;
  FarMemory const& memory_;  // its World is used only while there are messages
  std::function<void(std::exception_ptr)> const failed_;
  Allocation messages_, bytes_, taken_, posted_;
  StreamRing ring_;
  std::mutex mutex_;  // of targets_
  std::deque<FarTarget> targets_;
  // Pieces of the put that is carried out now. Only the thread uses it.
  std::deque<Questions::Begun> under_way_;
  std::chrono::steady_clock::time_point begun_{};  // the last of them
  std::atomic<bool> ending_ = false, drops_ = false, busy_ = false;
  std::thread thread_;
};

}  // namespace meshpost::detail
