#pragma once
#include <optional>
#include <string>

#include "net/engine.hpp"

namespace meshpost::net::mpi {

constexpr u64 frame_bytes = 4096;  // MPI usually sends this many eagerly

/// The beginning of every message that goes to an engine's tag.
struct Frame {
  enum class Kind : u32 { message, write, farewell };
  u32 number = 0;  ///< of the engine that sends it
  Kind kind = Kind::message;
  u64 size = 0;    ///< of the bytes that it announces
  u64 ticket = 0;  ///< tag under which they follow (all but a message's header); 0: they are here
  u64 key = 0, offset = 0;  ///< write: where to
  u32 data = 0;             ///< write: the data for the peer
  u32 header = 0;           ///< message: how many of the bytes are here, if others follow
};

/// An engine of a process.
struct Endpoint {
  u32 number = 0;  ///< unique in its process
  int tag() const;

  static Endpoint draw();
};

/// A tag for bytes that follow a frame. It differs from all others that this process has in use.
u64 draw_ticket();

std::string address_text(int rank, Endpoint endpoint);
/// Nothing if the text is not an address of this engine.
std::optional<std::pair<int, Endpoint>> address_from(std::string const& text);
std::string memory_text(u64 key);
std::optional<u64> memory_from(std::string const& text);

}  // namespace meshpost::net::mpi
