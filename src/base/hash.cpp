#include "base/hash.hpp"

#define XXH_INLINE_ALL  // NOLINT: its own name; nothing to link
#include <xxhash.h>

namespace meshpost {

u64 hash_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace meshpost
