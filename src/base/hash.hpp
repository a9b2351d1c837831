#pragma once
#include <string_view>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// XXH3 of these bytes, 64 bits: the same on every machine and in every build. It detects
/// accidental changes, not deliberate ones.
u64 hash_of(std::string_view bytes);

}  // namespace meshpost
