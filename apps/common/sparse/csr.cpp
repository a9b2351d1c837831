#include "csr.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <meshpost/base/error.hpp>
#include <span>
#include <stdexcept>
#include <tuple>

#include "common/files.hpp"
#include "common/host_memory.hpp"

namespace meshpost::apps::sparse {

u64 Csr::find(u32 row, u32 from) const {
  auto const all = column.begin();
  auto const at = std::lower_bound(all + static_cast<long>(begin[row]),
                                   all + static_cast<long>(begin[row + 1]), from);
  return static_cast<u64>(at - all);
}

Csr cut_out(Csr const& matrix, Range rows, Range columns) {
  Csr block;
  block.rows = rows.count();
  block.columns = columns.count();
  for (u32 row = rows.first; row < rows.last; ++row) {
    u64 const last = matrix.find(row, columns.last);
    for (u64 k = matrix.find(row, columns.first); k < last; ++k) {
      block.column.push_back(matrix.column[k] - columns.first);
      block.value.push_back(matrix.value[k]);
    }
    block.begin.push_back(block.entries());
  }
  return block;
}

Csr from_entries(u32 rows, u32 columns, std::vector<Entry> entries) {
  std::ranges::stable_sort(entries, {}, [](Entry const& e) { return std::tuple(e.row, e.column); });
  Csr matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.begin.assign(u64{rows} + 1, 0);
  for (std::size_t k = 0; k < entries.size(); ++k) {
    auto const& entry = entries[k];
    if (k > 0 && entry.row == entries[k - 1].row && entry.column == entries[k - 1].column) {
      matrix.value.back() += entry.value;
      bool const third =
          k > 1 && entries[k - 2].row == entry.row && entries[k - 2].column == entry.column;
      if (!third) ++matrix.repeated;
      continue;
    }
    matrix.column.push_back(entry.column);
    matrix.value.push_back(entry.value);
    ++matrix.begin[entry.row + 1];
  }
  for (u32 row = 0; row < rows; ++row) matrix.begin[row + 1] += matrix.begin[row];
  return matrix;
}

void require_memory(double bytes, std::string const& operation, std::string const& what) {
  double const memory = host_memory();
  if (bytes <= memory) return;
  auto const gigabytes = [](double size) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GB", size / 1e9);
    return std::string(text);
  };
  throw Error(Kind::out_of_memory, operation,
              what + " take " + gigabytes(bytes) + ", and this host has " + gigabytes(memory),
              "choose a smaller matrix");
}

void write(Csr const& matrix, std::string const& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw std::runtime_error(folder + ": it can't be made a folder: " + failed.message());
  write_npy(folder + "/begin.npy", "<u8", {matrix.begin.size()},
            std::as_bytes(std::span(matrix.begin)));
  write_npy(folder + "/column.npy", "<u4", {matrix.entries()},
            std::as_bytes(std::span(matrix.column)));
  write_npy(folder + "/value.npy", "<f8", {matrix.entries()},
            std::as_bytes(std::span(matrix.value)));
}

}  // namespace meshpost::apps::sparse
