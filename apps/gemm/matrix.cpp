#include "matrix.hpp"

#include <algorithm>

#include "common/bf16.hpp"
#include "common/random.hpp"

namespace meshpost::gemm {
namespace {

// Calls work(T*) with the bytes seen as numbers of the type.
template <class Work>
void with_type(blas::Type type, void* data, Work const& work) {
  switch (type) {
    case blas::Type::float64: return work(static_cast<double*>(data));
    case blas::Type::bf16: return work(static_cast<blas::Bf16*>(data));
    default: return work(static_cast<float*>(data));
  }
}

}  // namespace

double element(u64 seed, u64 row, u64 column) {
  using apps::golden, apps::mixed;
  u64 const bits = mixed(seed + golden * (row + 1) + mixed(column + 0x632be59bd9b4e019u));
  return static_cast<double>(static_cast<i64>(bits)) * 0x1p-63;
}

u64 columns_at_once(u64 rows) { return std::max<u64>(1, (u64{8} << 20) / std::max<u64>(1, rows)); }

Distributed::Distributed(Devices devices, Grid grid, u64 rows, u64 columns, blas::Type type,
                         Spread spread)
    : devices_(std::move(devices)),
      grid_(grid),
      rows_(rows),
      columns_(columns),
      type_(type),
      spread_(std::move(spread)) {
  for (u32 d = 0; d < grid_.devices(); ++d) {
    Bytes const size{rows_of(d).count * columns_of(d).count * blas::size_of(type_)};
    auto& block = blocks_.emplace_back();
    if (spread_.job && spread_.has(d)) block = spread_.job->allocate(*devices_[d], size);
    else if (spread_.has(d)) block = devices_[d]->allocate(size, MemoryKind::device);
  }
  for (u32 d = 0; spread_.job && d < grid_.devices(); ++d)
    exposed_.push_back(spread_.job->expose(blocks_[d].data(), blocks_[d].size(),
                                           "the block of device " + std::to_string(d)));
}

void Distributed::fill(u64 seed, blas::Team& team) {
  u64 const size = blas::size_of(type_);
  for (u32 d = 0; d < grid_.devices(); ++d) {
    if (!spread_.has(d)) continue;
    auto const rows = rows_of(d), columns = columns_of(d);
    u64 const step = columns_at_once(rows.count);
    std::vector<unsigned char> host(rows.count * std::min(step, columns.count) * size);
    for (u64 first = 0; first < columns.count; first += step) {
      u64 const now = std::min(step, columns.count - first);
      team.run([&](u32 member) {
        with_type(type_, host.data(), [&]<class T>(T* numbers) {
          for (u64 j = member; j < now; j += team.size())
            for (u64 i = 0; i < rows.count; ++i) {
              double const value = element(seed, rows.first + i, columns.first + first + j);
              if constexpr (sizeof(T) == 2)
                numbers[j * rows.count + i] = T(static_cast<float>(value));
              else numbers[j * rows.count + i] = static_cast<T>(value);
            }
        });
      });
      devices_[d]->write(static_cast<char*>(block(d)) + first * rows.count * size, host.data(),
                         Bytes{now * rows.count * size});
    }
  }
}

void Distributed::poison() {
  for (u32 d = 0; d < grid_.devices(); ++d)
    if (spread_.has(d)) devices_[d]->fill(block(d), 0xff, blocks_[d].size());
}

std::vector<double> Distributed::read(Range columns, blas::Team& team) const {
  u64 const size = blas::size_of(type_);
  std::vector<double> all(rows_ * columns.count);
  std::vector<unsigned char> host;
  for (u32 d = 0; d < grid_.devices(); ++d) {
    auto const own_rows = rows_of(d), own = columns_of(d);
    u64 const first = std::max(own.first, columns.first), end = std::min(own.end(), columns.end());
    if (first >= end) continue;
    host.resize((end - first) * own_rows.count * size);
    u64 const offset = (first - own.first) * own_rows.count * size;
    if (spread_.has(d))
      devices_[d]->read(host.data(), static_cast<char const*>(block(d)) + offset,
                        Bytes{host.size()});
    else copy(host.data(), far(d, offset, Bytes{host.size()}));
    team.run([&](u32 member) {
      with_type(type_, host.data(), [&]<class T>(T const* numbers) {
        for (u64 j = member; j < end - first; j += team.size())
          for (u64 i = 0; i < own_rows.count; ++i)
            all[(first - columns.first + j) * rows_ + own_rows.first + i] =
                static_cast<double>(numbers[j * own_rows.count + i]);
      });
    });
  }
  return all;
}

}  // namespace meshpost::gemm
