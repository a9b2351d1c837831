// Beyond 4 GiB: no size, offset or pitch is cut to 32 bits. Addresses are plenty. Few pages are
// touched, except by one copy of all.
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <string>

#include "copy/places.hpp"

namespace meshpost {
namespace {

constexpr u64 gib = u64{1} << 30;

class Addresses {
 public:
  explicit Addresses(u64 size)
      : size_(size),
        data_(static_cast<u8*>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Addresses() {
    if (data_ != MAP_FAILED) munmap(data_, size_);
  }
  Addresses(Addresses const&) = delete;
  Addresses& operator=(Addresses const&) = delete;
  explicit operator bool() const { return data_ != MAP_FAILED; }
  u8* at(u64 offset) const { return data_ + offset; }

 private:
  u64 size_;
  u8* data_;
};

u64 available() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;)
    if (u64 kilobytes = 0; name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  return 0;
}

TEST(Large, a_copy_of_more_than_4_gib_is_whole) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep more memory beside it than there is";
#endif
  u64 const size = 4 * gib + 4097;
  if (available() < 2 * size) GTEST_SKIP() << "it takes " << 2 * size << " bytes of free memory";
  Addresses const source(size), target(size);
  ASSERT_TRUE(source && target);
  u64 const marked[] = {0, 1, gib + 77, 4 * gib - 1, 4 * gib, 4 * gib + 1, size - 1};
  for (u64 const at : marked) *source.at(at) = static_cast<u8>(at % 251 + 1);
  copy(target.at(0), source.at(0), Bytes{size});
  for (u64 const at : marked) EXPECT_EQ(*target.at(at), static_cast<u8>(at % 251 + 1)) << at;
  EXPECT_EQ(std::memcmp(target.at(gib), source.at(gib), gib), 0);
}

TEST(Large, pitches_beyond_4_gib_reach_their_rows) {
  u64 const row = 5 * gib + 123, width = 100;
  Addresses const source(3 * row), target(3 * row);
  if (!source || !target) GTEST_SKIP() << "this process may not have so many addresses";
  for (u64 r = 0; r < 3; ++r) std::memset(source.at(r * row), static_cast<int>(r + 1), width);
  Pitch const pitch{Bytes{row}, Bytes{3 * row}};
  copy_async(target.at(0), pitch, source.at(0), pitch, BlockShape{Bytes{width}, 3, 1}).wait();
  for (u64 r = 0; r < 3; ++r)
    for (u64 i = 0; i < width; ++i) ASSERT_EQ(*target.at(r * row + i), r + 1) << r << " " << i;
  EXPECT_EQ(*target.at(row - 1), 0) << "the gap stays";
}

}  // namespace
}  // namespace meshpost
