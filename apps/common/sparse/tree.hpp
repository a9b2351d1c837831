#pragma once
#include <meshpost/meshpost.hpp>

#include "square.hpp"

// Binomial trees over the devices of a row or column. Rank r of a device has a share of vectors and
// sends it only to ranks r of other devices, as soon as it is complete there.

namespace meshpost::apps::sparse {

/// The rank of another device that has the same number there.
MESHPOST_FN inline RankId partner(Rank const& self, u32 device) {
  return {device * self.local_size() + self.local_id()};
}

/// Sends this rank's share of a vector down the column of devices: to those that it is the parent
/// of, at `target` in their memory. They wait for `tag`.
/// Called by: all threads. Reuse: `source` must not change before flush().
MESHPOST_FN inline void send_down(Rank& self, Window<double> const& data, Square square,
                                  LocalSpan<double const> source, u64 target, Tag tag) {
  u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
  for (u32 level = Square::first_level(i); level < square.levels(); ++level)
    if (square.sends(i, level))
      self.put_notify(data.at(partner(self, square.device(i + (1u << level), j)), target), source,
                      tag);
}

/// Adds the shares of x of a row of devices, into that of the first column. The share is `rows` of
/// the vector at `x` in the memory of a device. The sums of others come to the same rows of the
/// vectors at `inbox`, which are `stride` apart: one for each level, with tags from `first_tag` on.
/// So an inbox has one sender. The order of the sums is that of the tree.
/// Called by: all threads. Reuse: x must not change before flush().
MESHPOST_FN inline void add_along_row(Rank& self, Window<double> const& data, Square square,
                                      Range rows, u64 x, u64 inbox, u64 stride, u32 first_tag) {
  if (rows.count() == 0) return;
  u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
  auto const all = data.local(self);
  auto const mine = all.subspan(x + rows.first, rows.count());
  for (u32 level = 0; level < square.levels(); ++level) {
    u64 const place = inbox + level * stride + rows.first;
    Tag const tag{first_tag + level};
    if (square.gathers(j, level)) {
      self.wait(data, tag, 1, partner(self, square.device(i, j + (1u << level))));
      double const* const more = all.data() + place;
      self.each(rows.count(), [&](u64 k) { mine[k] += more[k]; });
    } else if (j > 0 && level == Square::last_level(j)) {
      self.put_notify(data.at(partner(self, square.device(i, j - (1u << level))), place), mine,
                      tag);
      return;
    }
  }
}

/// The same addition as a plain kernel.
struct Add {
  u32 rows;
  double const* more;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 k = first; k < rows; k += stride) x[k] += more[k];
  }
};

}  // namespace meshpost::apps::sparse
