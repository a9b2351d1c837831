#pragma once
// What every header that a kernel includes builds on. Compiles under g++, nvcc and NVRTC: no header
// of the standard library that needs a host.

#if defined(__CUDACC__)
#define MESHPOST_FN __host__ __device__
#else
#define MESHPOST_FN
#endif

/// A function that is seldom called and must not lie in the way of what is.
#define MESHPOST_COLD MESHPOST_FN __attribute__((noinline))

/// Before a loop that a GPU's compiler must not unroll: its code would be longer to fetch, and take
/// more registers.
#if defined(__CUDA_ARCH__)
#define MESHPOST_ROLLED _Pragma("unroll 1")
#else
#define MESHPOST_ROLLED
#endif

namespace meshpost {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8);

/// Version of everything that host and kernel share in memory. A kernel compiled against another
/// one is refused at launch.
inline constexpr u32 abi_version = 9;

}  // namespace meshpost
