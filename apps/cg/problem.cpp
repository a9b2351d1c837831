#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <meshpost/copy/job_memory.hpp>
#include <span>

#include "common/command.hpp"
#include "common/gather.hpp"
#include "common/sparse/random.hpp"
#include "common/study/study.hpp"

namespace cg {

using namespace meshpost;

namespace {

constexpr u64 most_entries = std::numeric_limits<std::int32_t>::max();

// The pieces of the devices, in proportion to their shares.
Distribution distribute(u32 pieces, u32 devices, std::vector<double> const& shares) {
  if (shares.empty()) return Distribution::block(pieces, devices);
  if (shares.size() != devices)
    apps::refuse("--shares",
                 std::to_string(shares.size()) + " shares for " + std::to_string(devices) +
                     " devices of all processes",
                 "give one for each device");
  return Distribution::block(pieces, std::span(shares));
}

// Each device's rows are those of its pieces.
Distribution rows_of(Distribution const& pieces, Pieces const& cut) {
  std::vector<double> sizes;  // Distribution::block() meets whole numbers exactly
  for (u32 part = 0; part < pieces.parts(); ++part) {
    u64 const first = *pieces.begin_of(part) * cut.height;
    u64 const end = std::min(cut.rows, first + pieces.size_of(part) * cut.height);
    sizes.push_back(static_cast<double>(end - std::min(first, end)));
  }
  return Distribution::block(cut.rows, std::span<double const>(sizes));
}

u64 most_of_all(World const& world, u64 mine) { return ~apps::least(world, ~mine); }

}  // namespace

Problem::Problem(World& world, Matrix const& matrix, std::vector<double> const& shares, u64 seed,
                 u32 lanes)
    : world_(world),
      pieces_(Pieces::of(matrix.rows())),
      seed_(seed),
      first_(world.first_rank() / world.ranks_per_device()),
      mean_(static_cast<double>(matrix.entries()) / static_cast<double>(matrix.rows())) {
  lanes_ = lanes > 0 ? lanes : lanes_for(mean_);
  auto const devices = static_cast<u32>(world.devices().size());
  auto const pieces = distribute(pieces_.count(), world.device_count(), shares);
  auto const rows = rows_of(pieces, pieces_);
  u64 here = 0;
  for (u32 i = 0; i < devices; ++i) here += rows.size_of(first_ + i);
  // The rows with global columns, then once more as the devices have them; vectors.
  apps::sparse::require_memory(static_cast<double>(here) * (mean_ * 28 + 64), matrix.describe(),
                               std::to_string(here) + " rows in this process");

  std::vector<Local> all(devices);
  std::vector<Plan::Pattern> patterns;
  std::vector<std::vector<u64>> every(devices);
  for (u32 i = 0; i < devices; ++i) {
    auto& local = all[i];
    u32 const part = first_ + i;
    auto& share = shares_.emplace_back();
    share.own = rows.size_of(part);
    share.begin = *rows.begin_of(part);
    share.first_piece = static_cast<u32>(*pieces.begin_of(part));
    share.pieces = static_cast<u32>(pieces.size_of(part));
    auto const entries = static_cast<u64>(mean_ * static_cast<double>(share.own)) + 64;
    local.columns.reserve(entries), local.values.reserve(entries);
    for (u64 row = share.begin; row < share.begin + share.own; ++row) {
      matrix.append(row, local.columns, local.values);
      local.offsets.push_back(local.columns.size());
    }
    patterns.push_back({local.offsets, local.columns});
    for (u32 piece = 0; piece < pieces_.count(); ++piece) every[i].push_back(piece);
  }
  {
    JobMemory job;
    halo_ = Plan::from_pattern(rows, patterns, &job);
    sums_ = Plan::from_indices(pieces, every, &job);
  }
  make_windows(all);
  for (u32 i = 0; i < devices; ++i) place(first_ + i, all[i]);
}

void Problem::make_windows(std::vector<Local> const& all) {
  auto const room = [&](char const* what, u64 mine) {
    u64 const most = most_of_all(world_, mine);
    if (most > most_entries)
      throw Error(Kind::bad_argument, "cg",
                  "a device has " + std::to_string(most) + " " + what +
                      ", and 2147483647 is the "
                      "most",
                  "use more devices, or a smaller matrix");
    return shared_parts(world_, most);
  };
  u64 entries = 0, own = 0;
  for (auto const& local : all) {
    entries = std::max<u64>(entries, local.columns.size());
    own = std::max<u64>(own, local.offsets.size() - 1);
  }
  matrix_.begin = world_.window<u32>(room("rows", own + 2), Tags{0}, "begin");
  matrix_.place = world_.window<u32>(room("rows", own), Tags{0}, "place");
  matrix_.column = world_.window<u32>(room("entries", entries), Tags{0}, "column");
  matrix_.value = world_.window<double>(room("entries", entries), Tags{0}, "value");
  matrix_.share = world_.window<Share>(shared_parts(world_, 1), Tags{0}, "share");
  matrix_.bounds = world_.window<u64>(shared_parts(world_, 2 * (world_.ranks_per_device() + 1)),
                                      Tags{0}, "bounds");
  auto const padded = [](u64 elements) { return (elements + 15) / 16 * 16; };  // 128 bytes
  layout_ = {padded(halo_->most().size), padded(sums_->most().size), padded(halo_->most().sent)};
  data_ = world_.window<double>(shared_parts(world_, layout_.size()), Tags{0}, "vectors");
}

// Writes a device's rows: the inner ones, then the outer ones. Frees them here.
void Problem::place(u32 device, Local& local) {
  auto& share = shares_[device - first_];
  auto const is_own = [&](u64 column) { return column - share.begin < share.own; };
  std::vector<u32> order, outer;
  for (u64 row = 0; row < share.own; ++row) {
    auto const* const first = local.columns.data() + local.offsets[row];
    auto const* const last = local.columns.data() + local.offsets[row + 1];
    (std::all_of(first, last, is_own) ? order : outer).push_back(static_cast<u32>(row));
  }
  share.inner = order.size(), share.outer = outer.size();
  share.size = halo_->of(device).size();
  order.insert(order.end(), outer.begin(), outer.end());

  std::vector<u32> begin{0}, column;
  std::vector<double> value;
  column.reserve(local.columns.size()), value.reserve(local.columns.size());
  for (u64 k = 0; k < share.own; ++k) {
    if (k == share.inner) share.inner_entries = column.size(), begin.push_back(0);
    for (u64 e = local.offsets[order[k]]; e < local.offsets[order[k] + 1]; ++e) {
      u64 const global = local.columns[e];
      column.push_back(static_cast<u32>(is_own(global) ? global - share.begin
                                                       : halo_->place_of(device, global)));
      value.push_back(local.values[e]);
    }
    begin.push_back(static_cast<u32>(column.size() - share.inner_entries));
  }
  if (share.inner == share.own) share.inner_entries = column.size(), begin.push_back(0);
  share.outer_entries = column.size() - share.inner_entries;
  local = {};

  // A rank gets about as many entries as another one. A row takes time of its own, too.
  u32 const ranks = world_.ranks_per_device();
  std::vector<u64> bounds;
  auto const cut = [&](u32 const* begins, u64 rows) {
    u64 row = 0;
    for (u64 rank = 0; rank <= ranks; ++rank) {
      u64 const goal = (begins[rows] + 2 * rows) * rank / ranks;
      while (row < rows && begins[row] + 2 * row < goal) ++row;
      bounds.push_back(rank == ranks ? rows : row);
    }
  };
  cut(begin.data(), share.inner);
  cut(begin.data() + share.inner + 1, share.outer);

  auto const rank = rank_of(device);
  matrix_.begin.write(rank, 0, std::span<u32 const>(begin));
  matrix_.place.write(rank, 0, std::span<u32 const>(order));
  matrix_.column.write(rank, 0, std::span<u32 const>(column));
  matrix_.value.write(rank, 0, std::span<double const>(value));
  matrix_.share.write(rank, 0, std::span<Share const>(&share, 1));
  matrix_.bounds.write(rank, 0, std::span<u64 const>(bounds));
}

Rows Problem::inner(u32 device) const {
  auto const rank = rank_of(device);
  return {matrix_.begin.part(rank).data(), matrix_.column.part(rank).data(),
          matrix_.place.part(rank).data(), matrix_.value.part(rank).data()};
}
Rows Problem::outer(u32 device) const {
  return DeviceMatrix::outer_of(inner(device), shares_[device - first_]);
}

double Problem::b(u64 row) const {
  return apps::sparse::unit(apps::sparse::mix(apps::sparse::mix(seed_) + row));
}

void Problem::reset() const {
  for (u32 i = 0; i < shares_.size(); ++i) {
    auto const& share = shares_[i];
    std::vector<double> all(layout_.size(), std::numeric_limits<double>::quiet_NaN());
    for (u64 row = 0; row < share.own; ++row) {
      all[layout_.x() + row] = 0;
      all[layout_.r() + row] = all[layout_.p() + row] = b(share.begin + row);
    }
    data_.write(rank_of(first_ + i), 0, std::span<double const>(all));
  }
}

std::vector<double> Problem::own(u64 offset) const {
  std::vector<double> all;
  for (u32 i = 0; i < shares_.size(); ++i) {
    u64 const before = all.size();
    all.resize(before + shares_[i].own);
    data_.read(rank_of(first_ + i), offset, std::span(all).subspan(before));
  }
  return all;
}

std::vector<double> Problem::whole_x() const {
  auto const& rows = halo_->distribution();
  std::vector<double> all(rows.size());
  for (u32 part = 0; part < rows.parts(); ++part)
    data_.read(rank_of(part), layout_.x(),
               std::span(all).subspan(*rows.begin_of(part), rows.size_of(part)));
  return all;
}

double Problem::residual_of_q() const {
  double sums[2] = {};
  auto const q = own(layout_.q());
  u64 k = 0;
  for (auto const& share : shares_)
    for (u64 row = share.begin; row < share.begin + share.own; ++row, ++k) {
      double const one = b(row), off = one - q[k];
      sums[0] += off * off, sums[1] += one * one;
    }
  if (world_.processes() > 1) {
    JobMemory job;
    std::string const mine(reinterpret_cast<char const*>(sums), sizeof sums);
    sums[0] = sums[1] = 0;
    for (auto const& text : gather(job, mine)) {
      double theirs[2];
      text.copy(reinterpret_cast<char*>(theirs), sizeof theirs);
      sums[0] += theirs[0], sums[1] += theirs[1];
    }
  }
  return std::sqrt(sums[0] / sums[1]);
}

}  // namespace cg
