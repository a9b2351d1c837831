#include "base/hash.hpp"

#define XXH_INLINE_ALL  // NOLINT: its own name; nothing to link
#include <xxhash.h>

namespace meshpost {

#ifdef __x86_64__
namespace detail {
unsigned long hash_by_avx2(char const* bytes, unsigned long size);  // hash_avx2.cpp
}
#endif

// The library is compiled for any x86-64, where XXH3 uses SSE2. With AVX2 long inputs take 0.6
// times as long; short ones use neither. xxHash's own library has such a choice, too.
u64 hash_of(std::string_view bytes) {
#ifdef __x86_64__
  if (bytes.size() > XXH3_MIDSIZE_MAX && __builtin_cpu_supports("avx2"))
    return detail::hash_by_avx2(bytes.data(), bytes.size());
#endif
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace meshpost
