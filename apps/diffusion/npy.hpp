#pragma once
#include <string>
#include <vector>

namespace diffusion {

/// A field of float64 as a .npy file holds it: [level][row][column].
struct Field {
  unsigned levels = 0, rows = 0, columns = 0;
  std::vector<double> values;
};

/// Reads a .npy file (C order, little-endian float64, two or three dimensions), or makes random
/// values from "random:LEVELSxROWSxCOLUMNS:SEED". \throws std::runtime_error naming the file and
/// what is wrong with it
Field read_field(std::string const& source);
/// \throws std::runtime_error
void write_npy(std::string const& file, Field const& field);

}  // namespace diffusion
