#pragma once
#include <meshpost/base/types.hpp>

#include "npy.hpp"

namespace diffusion {

/// The values of a field in the order of the kernels, [row][level][column].
template <class Real>
std::vector<Real> rows_of(Field const& field) {
  std::vector<Real> rows(field.values.size());
  auto* to = rows.data();
  for (meshpost::u32 j = 0; j < field.rows; ++j)
    for (meshpost::u32 k = 0; k < field.levels; ++k)
      for (meshpost::u32 i = 0; i < field.columns; ++i)
        *to++ = static_cast<Real>(
            field.values[(meshpost::u64{k} * field.rows + j) * field.columns + i]);
  return rows;
}

/// Puts rows in that order into a field of their size.
template <class Real>
void store_rows(std::vector<Real> const& rows, Field& field) {
  auto const* from = rows.data();
  for (meshpost::u32 j = 0; j < field.rows; ++j)
    for (meshpost::u32 k = 0; k < field.levels; ++k)
      for (meshpost::u32 i = 0; i < field.columns; ++i)
        field.values[(meshpost::u64{k} * field.rows + j) * field.columns + i] = *from++;
}

}  // namespace diffusion
