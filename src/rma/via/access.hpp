#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "meshpost/device/block.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/rma/command_queue.hpp"

namespace meshpost::detail {

/// Keeps bytes in pinned memory unchanged while it lives. Null: the bytes are valid only during the
/// call that gets them.
using Keep = std::shared_ptr<void const>;
struct Payload {
  std::string_view bytes;
  Keep keep{};
};

/// A message for an own device, in this process's addresses, and its bytes.
struct Delivery {
  via::Message message{};
  std::string_view bytes{};
  Keep keep{};  ///< of `bytes`
};

/// How the proxy reads and writes the memory of a device while ranks run there. The proxy's thread
/// calls this, unless a comment says otherwise. Operations that were begun are completed in poll().
class Access {
 public:
  static constexpr u64 largest = u64{512} << 10;  ///< bytes of a read or write
  using Take = std::function<void(std::string_view bytes, Keep const& keep)>;

  virtual ~Access() = default;
  /// Before the first run, and behind drop(): nothing is in flight.
  virtual void begin() {}
  /// After a run, when its ranks have ended: carries out the remaining commands. The next run may
  /// follow without begin().
  virtual void end() {}
  /// The same after a run that failed: forgets the commands, and lets nothing arrive later.
  virtual void drop() {}
  /// The command queue that this device's ranks poll.
  virtual CommandQueue command_queue() const { return {}; }

  /// In the order of the calls. Bytes are copied during the call, or kept. Kept bytes are let go of
  /// when a copy engine is done with them: if a rank carries out no commands, nothing is kept for
  /// it.
  virtual void deliver(Delivery const& delivery) = 0;
  /// Calls `take` with the bytes when they are here. Reads end in the order of the calls. Others
  /// may have to wait until kept bytes are let go of.
  virtual void read(void const* source, u64 bytes, Take take) = 0;
  /// Calls `then` when the bytes, which are copied or kept, have been written.
  virtual void write(void* target, std::string_view bytes, Keep keep,
                     std::function<void()> then) = 0;
  /// The memory that read() lets others keep parts of.
  virtual std::span<char> pinned() const { return {}; }
  /// Does a round of work. True if anything has happened.
  virtual bool poll() { return false; }

  /// True if nothing that was delivered can change the device's memory any more.
  virtual bool completed() const { return true; }

  /// True if an operation that was begun is not done, other than by ranks. Any thread.
  virtual bool busy() const { return false; }
  /// True if ranks have commands in their command queue, or will have. Any thread.
  virtual bool has_pending_commands() const { return false; }
};

/// By loads and stores for memory of the host, by a command queue for others. \throws
/// Error(out_of_memory)
std::unique_ptr<Access> make_access(Device& device);

}  // namespace meshpost::detail
