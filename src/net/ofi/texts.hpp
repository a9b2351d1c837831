#pragma once
#include <optional>
#include <string>
#include <vector>

#include "net/engine.hpp"

// Texts without blanks that engines exchange through their callers.

namespace meshpost::net::ofi {

struct Address {
  std::string provider;
  u32 number = 0;  ///< drawn by the engine; receivers know the sender by it
  std::string native;
};

std::string to_text(Address const& address);
/// Nothing if the text is not an address of this engine.
std::optional<Address> address_from(std::string const& text);

std::string to_text(RemoteMemory const& memory);
std::optional<RemoteMemory> memory_from(std::string const& text);

}  // namespace meshpost::net::ofi
