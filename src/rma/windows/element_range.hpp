#pragma once
#include <fmt/format.h>

#include <string>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// "elements 1 to 4 were named", for errors. The end may lie beyond 2^64.
inline std::string named_elements(u64 offset, u64 count) {
  if (count == 0) return fmt::format("no elements from {} on were named", offset);
  if (count == 1) return fmt::format("element {} was named", offset);
  u64 const most = ~u64{0} - offset;
  return fmt::format("elements {} to {} were named", offset,
                     count - 1 > most ? "beyond 2^64" : fmt::format("{}", offset + count - 1));
}

}  // namespace meshpost::detail
