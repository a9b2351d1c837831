// The hash of hash.cpp once more, compiled for AVX2. This source includes no other header and no
// inline function. The linker could take the AVX2 copy of one for the whole program, which then
// would not run on other processors.
#define XXH_INLINE_ALL  // NOLINT: its own name; nothing to link, and all of it is static
#include <xxhash.h>

namespace meshpost::detail {

unsigned long hash_by_avx2(char const* bytes, unsigned long size);
unsigned long hash_by_avx2(char const* bytes, unsigned long size) {
  return XXH3_64bits(bytes, size);
}

}  // namespace meshpost::detail
