#pragma once
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// Order of each device's products, and blocks of other devices that it fetches for them: plain
// values.

namespace meshpost::gemm {

/// Numbers [first, first + count).
struct Range {
  u64 first = 0, count = 0;
  u64 end() const { return first + count; }
  bool operator==(Range const&) const = default;
};

/// Part `index` of `count` numbers cut into `parts`. Sizes of parts differ by 1 at most.
Range part(u64 count, u32 parts, u32 index);

/// Devices in rows and columns, numbered along rows: device d is in row d / columns.
struct Grid {
  u32 rows = 1, columns = 1;
  u32 devices() const { return rows * columns; }
  bool operator==(Grid const&) const = default;
};

/// As near to a square as `devices` allow, with no more columns than rows: 2x1, 2x2, 3x2, 4x2.
Grid default_grid(u32 devices);
/// Reads "2x3". \throws Error(bad_argument)
Grid parse_grid(std::string const& text);

/// C = A B, where A has m rows and k columns, B k rows and n columns. Every matrix is cut into one
/// block for each device, in the same way for operands and result: its rows into grid.rows parts,
/// its columns into grid.columns.
struct Problem {
  u64 m = 0, n = 0, k = 0;
  Grid grid;
};

/// A remote part that goes into a buffer of the device. For A: columns `k` of the owner's block, in
/// the device's own row. For B: rows `k` of the owner's block, in the device's own column.
struct Fetch {
  u32 owner = 0;
  Range k;        ///< of the whole matrix
  u32 slot = 0;   ///< which buffer
  u32 after = 0;  ///< begins after so many steps of the device, when the buffer is free

  bool operator==(Fetch const&) const = default;
};

/// One product, added to the device's block of C: columns `k` of A with rows `k` of B.
struct Step {
  Range k;
  i32 a = in_place,
      b = in_place;  ///< positions in DevicePlan::a and b of fetches that must have arrived

  static constexpr i32 in_place = -1;  ///< the device's own block is the operand
  bool operator==(Step const&) const = default;
};

/// Work of one device: its steps, its fetches of A and its fetches of B, each in order. The three
/// run concurrently, except for the waits of Step and Fetch.
struct DevicePlan {
  std::vector<Fetch> a, b;
  std::vector<Step> steps;

  bool operator==(DevicePlan const&) const = default;
};

/// Order of a device's stretches of k.
enum class Order {
  links,    ///< own blocks, then those over fast links, then those over slow ones
  numbers,  ///< the same by distance of device numbers: it is the same on every machine
  k         ///< as k goes: for comparison. All devices of a row begin with the same block
};

struct PlanOptions {
  u64 panel = 4096;  ///< most columns of A, or rows of B, in a fetch
  u32 slots = 2;     ///< buffers for each of A and B
  Order order = Order::links;
  bool small_first = true;  ///< a device without local work begins with small panels
  /// For Order::links: [device][owner] is larger if the owner's blocks take a slower link to the
  /// device. Only numbers of one row are compared. Empty: all links are alike.
  std::vector<std::vector<u32>> distances{};
};

struct Plan {
  Problem problem;
  PlanOptions options;
  std::vector<DevicePlan> devices;
};

/// The order is the thesis's. Local blocks are multiplied first and hide the first fetches. Blocks
/// of near devices follow, then those of far devices (PlanOptions::order). A device without local
/// work at the beginning fetches small panels first.
/// \throws Error(bad_argument) for a matrix with fewer rows or columns than the grid, for panels or
/// slots of 0, for distances of another number of devices
Plan make_plan(Problem const& problem, PlanOptions const& options);

/// Half of k, between 512 and 16384. Narrower panels need less memory, but products of fewer
/// columns are slower. On four H200s, N = 32768 in float, eighths of k reach 0.93 of four times one
/// device, halves 0.97.
u64 default_panel(u64 k);

/// Total of fetched numbers.
u64 exchanged(Plan const& plan);
/// Numbers that a device must fetch, by the formula rows (k - k_A) + (k - k_B) columns. Its block
/// of C is rows x columns, its block of A has k_A columns and its block of B k_B rows.
u64 fetched_by_formula(Problem const& problem, u32 device);
/// Numbers in the device's blocks of A, B and C.
u64 block_numbers(Problem const& problem, u32 device);
/// Numbers in the device's buffers for fetches.
u64 buffer_numbers(Plan const& plan, u32 device);
/// The most columns of A (`&DevicePlan::a`) or rows of B that a buffer of the device holds.
u64 slot_width(std::vector<Fetch> const& fetches);

}  // namespace meshpost::gemm
