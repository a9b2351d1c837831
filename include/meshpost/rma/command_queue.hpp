#pragma once
#include "meshpost/device/block.hpp"
#include "meshpost/rma/detail/via/proxy/packed_signal.hpp"

// What the host brings to ranks of a device whose memory it can't reach by loads and stores: the
// host writes commands into its own memory, ranks that wait carry them out. A host can't add to a
// counter over PCIe, and a copy that it starts takes 5 us; a rank that polls sees a command in one.
//
// Delivery is at consumption, so it is early enough when somebody waits. What nobody has carried
// out at the end of a run the host does, for then nobody else touches the memory.
//
// Order: commands are carried out one after the other, each by the rank that claims it. The host's
// store of `ready` releases the command, and what its copy engines wrote before
// (CommandQueueAccess); that rank acquires it, stores the bytes, fences at device scope and raises
// the counter, all on one device: the rest of the way is that of any notification
// (rma/detail/via/direct/write.hpp). Behind the same fence it counts the command as taken; who
// takes the next one has acquired that count, so a later command's counter also covers earlier
// commands' bytes.
//
// A command with nothing but a count says it in the 16 bytes that a look reads at once, which
// spares a trip over the bus. The host writes them before the flag; that a look which finds the
// flag finds them too rests on what hosts and buses do with an aligned read of 16 bytes: it is
// answered out of one cache line, at one time.

namespace meshpost {

/// Bytes, then a counter to raise, or a word to store whole.
struct Command {
  static constexpr u32 most = 128;

  PackedSignal signal;  ///< ready: number of the command + 1 once it may be read; if a count is all
                        ///< it says, that, and the rest of the command is not to be read
  u32 bytes = 0;        ///< of `data`, for `target`; longer ones are there before the command
  u32 word = 0;         ///< not 0: `target` is a word of that many bytes, stored whole
  void* target = nullptr;
  u32* counter = nullptr;  ///< null: none
  u32* sender_word = nullptr;
  u32 value = 0;   ///< to add to the counter
  u32 sender = 0;  ///< for sender_word
  alignas(16) char data[most]{};
};

/// A device's commands. Its ranks carry them out while they wait (Meanwhile). `commands` null: all
/// comes by loads and stores.
struct CommandQueue {
  Command* commands = nullptr;  ///< a ring of `capacity`, in memory of both
  u32* applied = nullptr;       ///< carried out, as far as the host is told; in memory of both
  struct Words {
    u32 taken;    ///< carried out
    u32 claimed;  ///< the same, plus one while somebody carries out the next
    u32 told;     ///< value of *applied
  };
  Words* words = nullptr;  ///< in the device's memory
  static constexpr u32 capacity = 512;

  MESHPOST_FN bool anything() const { return commands != nullptr; }
  /// Carries out the next command, if it has come; by one thread of a rank that waits. Over the bus
  /// go one look whether it has, and one for what it says unless that is a count alone.
  MESHPOST_FN void poll() const;
};

}  // namespace meshpost

#include "meshpost/rma/detail/via/proxy/commands.hpp"
