#pragma once
#include "common/enqueue.hpp"
#include "outcome.hpp"
#include "product.hpp"
#include "sums.hpp"

namespace cg {

// Plain kernels, an operation each, for streams.

/// packed[i] = vector[places[i]].
struct Pack {
  double const* vector;
  u32 const* places;
  u64 count;
  double* packed;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 i = first; i < count; i += stride) packed[i] = vector[places[i]];
  }
};

/// Some rows of y = A x.
struct Multiply {
  Rows rows;
  u32 lanes;
  u64 count;
  double const* x;
  double* y;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    multiply(rows, lanes, 0, count, first, stride, x, y);
  }
};

/// y[place[i]] = stored[i].
struct Scatter {
  double const* stored;
  u32 const* place;
  u64 count;
  double* y;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 i = first; i < count; i += stride) y[place[i]] = stored[i];
  }
};

/// Sums of the pieces of a device.
template <class Term>
struct SumPieces {
  u64 height, own;
  u32 pieces;
  double* sums;
  Term term;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    sum_pieces(height, own, 0, pieces, first, stride, sums, term);
  }
};

/// Terms of dot products.
struct Square {
  double const* r;
  MESHPOST_FN double operator()(u64 i) const { return r[i] * r[i]; }
};
struct Times {
  double const *p, *q;
  MESHPOST_FN double operator()(u64 i) const { return p[i] * q[i]; }
};

/// work(i) for all i below `count`.
template <class Work>
struct Each {
  u64 count;
  Work work;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 i = first; i < count; i += stride) work(i);
  }
};

struct Copied {
  double const* from;
  double* to;
  MESHPOST_FN void operator()(u64 i) const { to[i] = from[i]; }
};

}  // namespace cg
