#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace meshpost::apps {

/// Writes an array in C order as a .npy file. `type`: as NumPy names it, such as "<f4". The file
/// appears when it is complete. \throws std::runtime_error naming the file
void write_npy(std::string const& file, std::string const& type,
               std::vector<std::uint64_t> const& shape, std::span<std::byte const> bytes);

}  // namespace meshpost::apps
