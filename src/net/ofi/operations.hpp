#pragma once
#include <memory>
#include <vector>

#include "net/ofi/memory.hpp"

// The active operations of an endpoint. Their number is fixed. More are refused, and the caller
// tries again.

namespace meshpost::net::ofi {

/// Goes before the bytes of each message.
struct Preamble {
  enum class Form : u32 { message = 0x6d657301, data = 0x6d657302, greeting = 0x6d657303 };
  Form form = Form::message;
  u32 number = 0;  ///< the sender's
  u32 data = 0;
  u32 unused = 0;
};

constexpr u64 buffer_size = u64{16} << 10;
constexpr u64 most_bytes = buffer_size - sizeof(Preamble);

struct Operation {
  enum class Step {
    free,
    message,
    greeting,
    write,        // there may be more pieces
    tell,         // all bytes were started; an empty write tells the peer
    unannounced,  // all bytes were started; a message tells the peer
    announcement
  };
  Step step = Step::free;
  u32 under_way = 0;  ///< requests that the provider has not completed
  bool told = false;  ///< its peer was lost, and the caller knows that the operation has ended
  u32 peer = 0;
  u64 cookie = 0;
  u64 sent = 0;  ///< bytes of the message in the buffer
  // Of a write: the part that is not yet started.
  std::span<char const> source;
  RemoteMemory target;
  u64 offset = 0;
  u32 data = 0;
  Memory::Source registration;
};

class Operations {
 public:
  Operations(Memory& memory, u64 count)
      : all_(count),
        contexts_(count),
        buffers_(std::make_unique_for_overwrite<char[]>(count * buffer_size)) {
    descriptor_ = memory.own(buffers_.get(), count * buffer_size);
    for (u64 i = count; i-- > 0;) free_.push_back(static_cast<u32>(i));
  }

  bool none_free() const { return free_.empty(); }
  u32 take(Operation::Step step, u32 peer, u64 cookie) {
    u32 const index = free_.back();
    free_.pop_back();
    auto& operation = all_[index];
    operation.step = step, operation.peer = peer, operation.cookie = cookie;
    return index;
  }
  void release(u32 index) {
    all_[index] = Operation{};
    free_.push_back(index);
  }

  Operation& operator[](u32 index) { return all_[index]; }
  std::vector<Operation>& all() { return all_; }
  char* buffer(u32 index) const { return buffers_.get() + index * buffer_size; }
  void* descriptor() const { return descriptor_; }  ///< of all buffers
  void* context(u32 index) { return &contexts_[index]; }
  bool owns(void const* context) const {
    auto const* const one = static_cast<fi_context2 const*>(context);
    return one >= contexts_.data() && one < contexts_.data() + contexts_.size();
  }
  u32 index(void const* context) const {
    return static_cast<u32>(static_cast<fi_context2 const*>(context) - contexts_.data());
  }

 private:
  std::vector<Operation> all_;
  std::vector<fi_context2> contexts_;
  std::unique_ptr<char[]> buffers_;
  void* descriptor_ = nullptr;
  std::vector<u32> free_;
};

}  // namespace meshpost::net::ofi
