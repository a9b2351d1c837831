#pragma once
#include <meshpost/base/types.hpp>

#include <cstddef>
#include <filesystem>
#include <initializer_list>
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
void write_pieces(std::string const& file,
                  std::initializer_list<std::span<std::byte const>> pieces);
void write_file(std::string const& file, std::span<std::byte const> bytes);
void write_text(std::string const& file, std::string_view text);

/// Tests before long work that a file can be written later. Leaves nothing.
/// \throws std::runtime_error naming it
void check_writable(std::string const& file);

/// The first line of a file; empty if it can't be read.
std::string line_of(std::filesystem::path const& file);

}  // namespace meshpost::apps
