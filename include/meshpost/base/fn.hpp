#pragma once
// Every header that a kernel includes builds on this one. It compiles under g++, nvcc and NVRTC, so
// it includes no header of the standard library that needs a host.

#if defined(__CUDACC__)
#define MESHPOST_FN __host__ __device__
#else
#define MESHPOST_FN
#endif

/// A function that is seldom called. Its code stays out of the path of frequent calls.
#define MESHPOST_COLD MESHPOST_FN __attribute__((noinline))

/// Before a loop that a GPU's compiler must not unroll: the code would take longer to fetch, and
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
inline constexpr u32 abi_version = 14;

}  // namespace meshpost
