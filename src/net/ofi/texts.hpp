#pragma once
#include <optional>
#include <string>
#include <vector>

#include "net/engine.hpp"

// What engines tell each other by way of their callers: texts without blanks.

namespace meshpost::net::ofi {

struct Address {
  std::string provider;
  u32 number = 0;  ///< drawn by the engine; by it others know whose bytes they have got
  std::string native;
};

std::string to_text(Address const& address);
/// Nothing if the text is not an address of this engine.
std::optional<Address> address_from(std::string const& text);

std::string to_text(RemoteMemory const& memory);
std::optional<RemoteMemory> memory_from(std::string const& text);

}  // namespace meshpost::net::ofi
