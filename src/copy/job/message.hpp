#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"
#include "net/channel.hpp"

namespace meshpost::copying {

/// Messages of two processes by a net::Channel, if neither reaches the other's memory. The asker
/// cuts a copy into pieces and gives each a number; its owner answers each piece. Bytes follow.
struct Message {
  static constexpr u32 message_kind = 2;  ///< of the channel's
  enum class Type : u32 {
    put,      ///< asker: `bytes` bytes for `offset` of an exposure
    get,      ///< asker: wants `bytes` bytes from `offset` of an exposure
    done,     ///< owner: those of a put are there
    bytes,    ///< owner: those of a get
    refusal,  ///< owner: an error (wire::pack)
    count
  };

  Type type = Type::put;
  u32 exposure = 0;
  u64 piece = 0;   ///< the asker's number for it; the answer repeats it
  u64 offset = 0;  ///< in the owner's part of the exposure
  u64 bytes = 0;   ///< that follow, or that are wanted
};

constexpr u64 largest_piece = u64{256} << 10;

/// Reads a message of the channel. \throws Error(bad_argument) where it can't be one: of
/// another size, of no known kind, with other bytes than it says, of a piece that is too large
Message read_message(net::Channel::Message const& come);

}  // namespace meshpost::copying
