#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "meshpost/device/block.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/rma/mailbox.hpp"

namespace meshpost::detail {

/// Bytes in pinned memory stay as they are for as long as somebody has this. Null: only during the
/// call that they are given to.
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

/// How the proxy reads and writes the memory of a device while ranks run there. Its thread calls
/// this, unless said otherwise. What is begun is done in poll().
class Access {
 public:
  static constexpr u64 largest = u64{512} << 10;  ///< bytes of a read or write
  using Take = std::function<void(std::string_view bytes, Keep const& keep)>;

  virtual ~Access() = default;
  /// Before the first run, and behind drop(): nothing is under way.
  virtual void begin() {}
  /// After a run, when its ranks have ended: carries out what they have not. The next run may
  /// follow without begin().
  virtual void end() {}
  /// Likewise, where the run came to nothing: forgets it, and lets nothing come later.
  virtual void drop() {}
  /// What this device's ranks look into.
  virtual Mailbox mailbox() const { return {}; }

  /// In the order of the calls. Bytes are copied during the call, or kept; if kept, not for longer
  /// than a copy engine takes: that a rank opens no letters makes nobody keep them.
  virtual void deliver(Delivery const& delivery) = 0;
  /// Calls `take` with the bytes when they are here; reads end in the order of the calls. Others
  /// may have to wait until what is kept is let go.
  virtual void read(void const* source, u64 bytes, Take take) = 0;
  /// Calls `then` when the bytes, which are copied or kept, are there.
  virtual void write(void* target, std::string_view bytes, Keep keep,
                     std::function<void()> then) = 0;
  /// The memory of which read() gives parts to keep.
  virtual std::span<char> pinned() const { return {}; }
  /// Gets on. Whether anything has happened.
  virtual bool poll() { return false; }

  /// Whether nothing that was delivered can change the device's memory any more.
  virtual bool settled() const { return true; }

  /// Whether something that was begun is not done, other than by ranks. Any thread.
  virtual bool busy() const { return false; }
  /// Whether ranks have something in their mailbox, or will have. Any thread.
  virtual bool unopened() const { return false; }
};

/// For memory of the host by loads and stores, for others by a mailbox. \throws
/// Error(out_of_memory)
std::unique_ptr<Access> make_access(Device& device);

}  // namespace meshpost::detail
