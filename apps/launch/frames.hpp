#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/fn.hpp"

// What the launcher and its agents on other hosts say to each other. Plain values; no sockets.
//
// An agent first says one line of text, greeting(); all else, both ways, are frames. Numbers travel
// as they lie in memory, little end first.

namespace meshpost::launch {

enum class Say : u32 {
  // the launcher
  listen,  ///< where process 0 will: number: port or 0; a list: an interface or "", what to say
  reach,   ///< a list: what who listens says, and the addresses to try
  job,     ///< Orders, see orders.hpp; where process 0 will be, the door is left to it
  start,   ///< process
  signal,  ///< number, to all processes and what they have started
  input,   ///< of process 0; nothing: its end
  close,   ///< take what was printed by now, and no more
  // an agent
  listens,      ///< a list: ports of IPv4 and IPv6, or ""; addresses of the interface; all
  reached,      ///< a list of addresses
  ready,        ///< it has its orders
  started,      ///< process; number: pid
  not_started,  ///< process; number: exit status; text: why
  printed,      ///< process; number: 1 or 2; nothing: its end
  ended,        ///< process; number: exit status, or minus the signal
  input_taken,  ///< there is room for more
  failed,       ///< number: exit status; text: why. The agent ends
  // both
  alive,  ///< number: milliseconds of silence after which the other counts as lost
  count
};

struct Frame {
  Say say = Say::alive;
  u32 process = 0;
  i32 number = 0;
  std::string text;
};

inline constexpr std::size_t most_text = std::size_t{1} << 22;  ///< bytes of a frame's text

/// What an agent says first: a line. Those of another version say another one.
std::string greeting();
inline constexpr std::string_view greeting_begins = "meshpost-run agent ";

void pack_onto(std::string& stream, Frame const& frame);

/// Cuts what arrives into frames.
class Cutter {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next whole line, without its end.
  std::optional<std::string> line();
  /// The next whole frame. \throws Error(bad_argument) if what came can't be one
  std::optional<Frame> next();

 private:
  std::string held_;
  std::size_t taken_ = 0;
};

/// Texts without zero bytes, one behind the other.
std::string pack_list(std::vector<std::string> const& texts);
std::vector<std::string> unpack_list(std::string_view text);

}  // namespace meshpost::launch
