#pragma once
#include "meshpost/device/detail/ring.hpp"
#include "meshpost/rma/detail/via/message.hpp"

// What the host brings to ranks of a device whose memory it can't reach by loads and stores: the
// host writes letters into its own memory, ranks that wait carry them out. A host can't add to a
// counter over PCIe, and a copy that it starts takes 5 us; a rank that polls sees a letter in one.
//
// Delivery is at consumption, so it is early enough when somebody waits. What nobody has carried
// out at the end of a run the host does, for then nobody else touches the memory.
//
// Order (device/detail/ring.hpp has the ring's): letters are carried out one after the other, each
// by the rank that claims it. The host's flag releases also what its copy engines wrote before
// (MailboxAccess). The rank acquires it, stores the bytes, fences at device scope and raises the
// counter, all on one device: the rest of the way is that of any notification
// (rma/detail/via/direct/write.hpp). Behind the same fence it counts the letter as taken; who takes
// the next one has acquired that count, so a later letter's counter also covers earlier letters'
// bytes.
//
// A letter with nothing but a count says it in the 16 bytes that a look reads at once, which spares
// a trip over the bus. The host writes them before the flag; that a look which finds the flag finds
// them too rests on what hosts and buses do with an aligned read of 16 bytes: it is answered out of
// one cache line, at one time.

namespace meshpost {

/// Longer bytes than it has room for are there before the letter, and are not its own.
struct Letter {
  via::Message message{};
  alignas(16) char data[via::Message::most_inline]{};

  MESHPOST_FN u32* flag() { return &message.signal.ready; }
};

/// A device's letters. Its ranks carry them out while they wait (Meanwhile). `records` null: all
/// comes by loads and stores.
struct Mailbox : detail::Ring<Letter, 512> {
  detail::RingTurns* turns = nullptr;  ///< in the device's memory

  MESHPOST_FN bool anything() const { return records != nullptr; }
  /// Carries out the next letter, if it has come; by one thread of a rank that waits. Over the bus
  /// go one look whether it has, one for its first 64 bytes unless it is a count alone, and one
  /// more for the rest.
  MESHPOST_FN void poll() const;
};

}  // namespace meshpost

#include "meshpost/rma/detail/via/proxy/letters.hpp"
