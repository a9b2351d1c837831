#pragma once
#include <string>
#include <string_view>

#include "csr.hpp"

namespace meshpost::apps::sparse {

/// The matrices that a program can use. A square one has rows.
enum class Shape : u32 { any, square };

/// Reads a Matrix Market file: coordinates; real, integer or pattern; general, symmetric or
/// skew-symmetric. The missing half of a symmetric matrix is filled in. The entries of a pattern
/// are 1. Format: https://math.nist.gov/MatrixMarket/formats.html
/// \throws Error(bad_argument) naming the file, the line, what was read there, what was
/// expected, and the remedy
Csr read_matrix_market(std::string const& file, Shape shape = Shape::any);

/// The same from text; `name` is for errors.
Csr parse_matrix_market(std::string_view text, std::string const& name, Shape shape = Shape::any);

}  // namespace meshpost::apps::sparse
