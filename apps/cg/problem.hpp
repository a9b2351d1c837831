#pragma once
#include <meshpost/meshpost.hpp>

#include <optional>
#include <vector>

#include "matrix.hpp"
#include "product.hpp"
#include "sums.hpp"

namespace cg {

/// Where vectors lie in the memory of a device, a block of doubles. The same on all devices.
struct Layout {
  u64 stride;    ///< of vectors, elements
  u64 sums;      ///< room for the sums of all pieces
  u64 outgoing;  ///< room for the elements that a device sends

  MESHPOST_FN u64 x() const { return 0; }
  MESHPOST_FN u64 r() const { return stride; }
  MESHPOST_FN u64 q() const { return 2 * stride; }
  /// The direction, whose halo other devices send.
  MESHPOST_FN u64 p() const { return 3 * stride; }
  /// Two take turns: 0 for p'Ap, 1 for r'r.
  MESHPOST_FN u64 piece_sums(u32 which) const { return 4 * stride + which * sums; }
  /// Packed by plain kernels; ranks pack elsewhere.
  MESHPOST_FN u64 packed() const { return 4 * stride + 2 * sums; }
  MESHPOST_FN u64 size() const { return packed() + outgoing; }
};

/// The part of a device in the problem.
struct Share {
  u64 begin = 0;             ///< its first row
  u64 own = 0, size = 0;     ///< rows; with the halo
  u64 inner = 0, outer = 0;  ///< rows that need no halo, and those that do
  u64 inner_entries = 0, outer_entries = 0;
  u32 first_piece = 0, pieces = 0;
};

/// The matrix in the memory of the devices. Inner rows come first, then outer ones. All ranks of a
/// device have all of it.
struct DeviceMatrix {
  meshpost::Window<u32> begin, column, place;
  meshpost::Window<double> value;
  meshpost::Window<Share> share;
  /// By rank of the device, and an end: its first inner row; then the same of the outer ones.
  meshpost::Window<u64> bounds;

  MESHPOST_FN static Rows outer_of(Rows const& inner, Share const& share) {
    return {inner.begin + share.inner + 1, inner.column + share.inner_entries,
            inner.place + share.inner, inner.value + share.inner_entries};
  }
  MESHPOST_FN Rows inner(meshpost::Rank const& self) const {
    return {begin.local(self).data(), column.local(self).data(), place.local(self).data(),
            value.local(self).data()};
  }
};

/// The system A x = b over the devices of a World. Its constructor is collective.
class Problem {
 public:
  /// `shares`: of the rows, by device; empty: equal ones. `seed`: of b. `lanes`: threads of a GPU
  /// that share a row; 0: by the mean length of rows.
  /// \throws Error(bad_argument, out_of_memory), and as Plan::from_pattern(), World::window()
  Problem(meshpost::World& world, Matrix const& matrix, std::vector<double> const& shares, u64 seed,
          u32 lanes);

  meshpost::World& world() const { return world_; }
  Layout const& layout() const { return layout_; }
  Pieces const& pieces() const { return pieces_; }
  /// The elements of a vector that devices need of others; and the sums of pieces: all need all.
  meshpost::Plan const& halo_plan() const { return *halo_; }
  meshpost::Plan const& sums_plan() const { return *sums_; }
  DeviceMatrix const& matrix() const { return matrix_; }
  meshpost::Window<double> const& data() const { return data_; }
  u32 lanes() const { return lanes_; }

  /// Devices of this process: the first one's number, and what each has.
  u32 first_device() const { return first_; }
  std::vector<Share> const& shares() const { return shares_; }
  meshpost::RankId rank_of(u32 device) const { return {device * world_.ranks_per_device()}; }
  /// Rows of a device of this process, in its addresses.
  Rows inner(u32 device) const;
  Rows outer(u32 device) const;
  double* memory(u32 device) const { return data_.part(rank_of(device)).data(); }

  /// Element `row` of b: above 0 and at most 1, random.
  double b(u64 row) const;
  /// Sets x = 0, r = p = b, and all else to NaN.
  void reset() const;
  /// A vector of the devices of this process, one behind the other. `offset`: of the layout.
  std::vector<double> own(u64 offset) const;
  /// x of all devices. For one process to call.
  std::vector<double> whole_x() const;
  /// |b - q| over |b|, where q = A x. Collective.
  double residual_of_q() const;

 private:
  struct Local {  // of a device, before it is written
    std::vector<u64> offsets{0}, columns{};
    std::vector<double> values{};
  };
  void place(u32 device, Local& local);
  void make_windows(std::vector<Local> const& all);

  meshpost::World& world_;
  Pieces pieces_;
  u64 seed_;
  u32 first_, lanes_;
  double mean_;
  std::optional<meshpost::Plan> halo_, sums_;
  std::vector<Share> shares_;
  Layout layout_{};
  DeviceMatrix matrix_;
  meshpost::Window<double> data_;
};

}  // namespace cg
