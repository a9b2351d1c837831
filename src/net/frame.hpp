#pragma once
#include <array>
#include <string_view>
#include <type_traits>

#include "meshpost/base/types.hpp"

// The form of a channel's messages on the wire. Only this code reads and writes it. When you change
// it, raise wire_version (src/world/greeting.cpp).

namespace meshpost::net {

/// Goes before each message of a channel.
struct FrameHeader {
  enum Flag : u32 {
    written = 1,  ///< its bytes were written into the receiver's memory, and do not follow
    answer = 2,   ///< the sender may wait to hear that this message has been carried out
    summed = 4,   ///< `check` covers the bytes, too
    all = 7
  };
  u32 kind = 0;      ///< whose message it is; 0: it only tells `heard`
  u32 sequence = 0;  ///< of this sender to this receiver; wraps
  u32 heard = 0;     ///< messages of the other direction that were carried out; wraps
  u32 flags = 0;
  u32 header_bytes = 0;  ///< of the client's header, which follows; the bytes come after it
  u32 body_bytes = 0;    ///< of the bytes that follow the client's header
  u64 check = 0;         ///< XXH3 of all this and what follows
};
static_assert(std::has_unique_object_representations_v<FrameHeader>);  // all of it is checked

constexpr u64 most_client_header = 256;
/// At most this many bytes are copied behind the headers. More are not copied.
constexpr u64 most_copied = 512;

/// A message as an engine takes it: a copied part, and a part that is read later.
class FrameOut {
 public:
  /// `header` without sizes and check: these are filled in. If its flags have `summed`, the check
  /// always covers the bytes, else only if they are copied.
  /// \throws Error(bad_argument) if a header of the client is too long
  FrameOut(FrameHeader header, std::string_view client_header, std::string_view bytes);

  std::string_view copied() const { return {copied_.data(), size_}; }
  std::string_view rest() const { return rest_; }

 private:
  std::array<char, sizeof(FrameHeader) + most_client_header + most_copied> copied_;
  u64 size_;
  std::string_view rest_;
};

/// A message that has arrived. The views point into the bytes that it was read from.
struct FrameIn {
  FrameHeader header;
  std::string_view client_header, bytes;
  bool has(FrameHeader::Flag flag) const { return (header.flags & flag) != 0; }

  /// \throws Error(peer_lost) if it is no frame, or was changed on its way
  static FrameIn read(std::string_view all);
};

/// The check sum for FrameHeader::check.
u64 check_of(FrameHeader header, std::string_view client_header, std::string_view bytes);

/// Ends the connection to the sender of a wrong message.
[[noreturn]] void refuse_message(std::string cause);

}  // namespace meshpost::net
