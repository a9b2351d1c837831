#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace meshpost {
namespace {

// Bytes longer than 240 go through the processor's widest vectors. The values are those of xxHash's
// plain C: processes of one job may run on processors that differ.
TEST(Hash, is_the_same_on_every_processor) {
  std::string text(1 << 20, '\0');
  for (u64 i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i % 251);
  for (auto const& [size, hash] :
       std::initializer_list<std::pair<u64, u64>>{{0, 0x2d06800538d394c2},
                                                  {1, 0xc44bdff4074eecdb},
                                                  {16, 0xf36d1380fc3d25fd},
                                                  {128, 0xa05397602c0d7380},
                                                  {240, 0x2599f7836101b7c7},
                                                  {241, 0xfa3e3f950b821a67},
                                                  {1024, 0xa3115476086f73f1},
                                                  {16385, 0x26a4193780e09332},
                                                  {1048576, 0x4125df320b94f520}})
    EXPECT_EQ(hash_of({text.data(), size}), hash) << size << " bytes";
}

}  // namespace
}  // namespace meshpost
