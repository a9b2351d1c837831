#pragma once
#include <meshpost/base/types.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace meshpost::apps {

/// Writes an array in C order as a .npy file. `type`: as NumPy names it, such as "<f4". The file
/// appears when it is complete. \throws std::runtime_error naming the file
void write_npy(std::string const& file, std::string const& type, std::vector<u64> const& shape,
               std::span<std::byte const> bytes);

/// Writes a file that appears when it is complete. \throws std::runtime_error naming it
void write_file(std::string const& file, std::span<std::byte const> bytes);

}  // namespace meshpost::apps
