#pragma once
#include <deque>
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost::compat::mp {

/// Two words of a request, in memory of the host that streams and kernels read and write.
/// They are counts: who waits for `number` sees it or, if the words are used again, a later one.
struct RequestWords {
  u32* rung = nullptr;  ///< the stream, kernel or host that begins the request stores `number`
  u32* done = nullptr;  ///< the library stores `number` when it is complete
  u32 number = 0;

  bool has_rung() const;
  void ring() const;
  void finish() const;
};

/// Streams may store words, or look at them, when nobody else uses these any more: such memory is
/// never freed.
void keep_for_ever(Allocation memory);

/// Words of requests, used again and again. One thread at a time, except for allocate().
class WordPool {
 public:
  explicit WordPool(std::shared_ptr<Device> device) : device_(std::move(device)) {
    add(allocate());
  }
  ~WordPool() {
    for (auto& block : blocks_) keep_for_ever(std::move(block));
  }
  WordPool(WordPool const&) = delete;
  WordPool& operator=(WordPool const&) = delete;
  bool empty() const { return free_.empty(); }
  RequestWords take();  ///< not if it is empty
  /// Memory for more. It may have to wait for the program's work on a GPU, so the caller holds no
  /// lock that others need.
  Allocation allocate() const;
  void add(Allocation block);
  Device& device() const { return *device_; }
  /// The request is complete, and has begun.
  void give(RequestWords const& words) { free_.push_back(words); }

 private:
  std::shared_ptr<Device> device_;
  std::vector<Allocation> blocks_;
  std::deque<RequestWords> free_;
};

}  // namespace meshpost::compat::mp
