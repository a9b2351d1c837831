#pragma once
#include <meshpost/base/types.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshpost::apps {

/// Writes an array in C order as a .npy file. `type`: as NumPy names it, such as "<f4". The file
/// appears when it is complete. \throws std::runtime_error naming the file
void write_npy(std::string const& file, std::string const& type, std::vector<u64> const& shape,
               std::span<std::byte const> bytes);

/// Writes a file that appears when it is complete. \throws std::runtime_error naming it
void write_file(std::string const& file, std::span<std::byte const> bytes);
void write_text(std::string const& file, std::string_view text);

/// The first line of a file; empty if it can't be read.
std::string line_of(std::filesystem::path const& file);

}  // namespace meshpost::apps
