#pragma once
#include <string>
#include <string_view>

#include "csr.hpp"

namespace meshpost::apps::sparse {

/// Reads a Matrix Market file: coordinates; real, integer or pattern; general, symmetric or
/// skew-symmetric. The missing half of a symmetric matrix is filled in. The entries of a pattern
/// are 1. Format: https://math.nist.gov/MatrixMarket/formats.html
/// \throws Error(bad_argument) naming the file, the line and what is wrong there
Csr read_matrix_market(std::string const& file);

/// The same from text; `name` is for errors.
Csr parse_matrix_market(std::string_view text, std::string const& name);

}  // namespace meshpost::apps::sparse
