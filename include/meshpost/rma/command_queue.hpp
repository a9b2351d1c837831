#pragma once
#include "meshpost/device/detail/ring.hpp"
#include "meshpost/device/team.hpp"
#include "meshpost/rma/detail/via/message.hpp"

// The way from the host to ranks of a device whose memory it can't reach by loads and stores. The
// host writes commands into its own memory, and ranks that wait carry them out. A host can't add to
// a counter over PCIe, and a copy that it starts takes 5 us. A rank that polls sees a command in 1
// us.
//
// Delivery is at consumption, so it is early enough if a waiting rank carries a command out. The
// host carries out the commands that remain at the end of a run, because then nobody else touches
// the memory.
//
// Order (device/detail/ring.hpp has the ring's): commands are carried out one after the other, each
// by the rank that claims it. The host's flag also releases what its copy engines wrote before
// (CommandQueueAccess). The rank's first thread acquires the flag, and its team meets. The team
// stores the bytes and meets, and its first thread fences at device scope and raises the counter,
// all on one device. The rest is the same as for any notification
// (rma/detail/via/direct/write.hpp). Behind the same fence the rank counts the command as taken.
// The rank that takes the next command has acquired that count. So a later command's counter also
// covers earlier commands' bytes. It does not cover their counters: on a GPU a rank may see a later
// command's counter raised, and not yet an earlier one's.
//
// A command that is a count alone has it in the 16 bytes that a poll reads at once. That saves a
// trip over the bus. The host writes these bytes before the flag. A poll that finds the flag also
// finds the bytes: this rests on how hosts and buses do an aligned read of 16 bytes. They answer it
// from one cache line, at one time.

namespace meshpost {

/// Bytes that don't fit are at the target before the command, and are not part of it.
struct alignas(64) Command {
  via::Message message{};

  MESHPOST_FN u32* flag() { return &message.signal.ready; }
};

/// A device's commands. Its ranks carry them out while they wait (Meanwhile). `records` null:
/// everything comes by loads and stores.
struct CommandQueue : detail::Ring<Command, 512> {
  detail::RingTurns* turns = nullptr;   ///< in the device's memory
  via::MessageBytes<capacity> bytes{};  ///< of commands that have some

  MESHPOST_FN bool anything() const { return records != nullptr; }
  /// Carries out the next command, if it has come. Called by a team of a rank that waits. Trips
  /// over the bus: one for the flag; unless it is a count alone one for the message with the first
  /// 16 bytes of each thread; then one for each further 16 bytes of each thread.
  MESHPOST_FN void poll(Team team) const;
};

}  // namespace meshpost

#include "meshpost/rma/detail/via/proxy/commands.hpp"
