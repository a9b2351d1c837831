#pragma once
#include "outcome.hpp"
#include "problem.hpp"

namespace cg {

/// The report of a device about its run.
struct DeviceReport {
  Result result;
  double spent[phases];  ///< of its first rank, seconds
  double seconds;
};

/// Conjugate gradients as one kernel:
///
///     rho = r'r                        all ranks have the same bits of rho, alpha and beta
///     repeat until rho is small:
///       halo of p; q = A p             inner rows while the halo is on its way, then outer rows
///       alpha = rho / p'q
///       x += alpha p; r -= alpha q     and r'r, in one loop
///       beta = r'r / rho; rho = r'r
///       p = r + beta p
///
/// The sums of the pieces (sums.hpp) go to all devices by an exchange like that of the halo, whose
/// plan says that every device needs all of them. A rank owns pieces. It alone writes their
/// elements of x, r and p. It multiplies other rows: those that make the entries equal.
///
/// Why nobody reads what is being written, element by element:
/// - p is read by all ranks of the device from halo.start() to the barrier behind the product. Its
///   owner writes it behind the second sum, which ends with a barrier of the device. Then
///   halo.start() begins with one. The halo is written in halo.finish(), behind that barrier and
///   before the one that ends it; inner rows don't read it.
/// - q is written by any rank in the product, and read by the owner behind the barrier that follows
///   the product. It is written again behind both sums and halo.start(), which have barriers.
/// - x and r are the owner's alone.
/// - Sums of pieces: there are two arrays. The owner writes array 0 behind the barrier of the
///   product. All ranks read the whole array behind gather.finish(). The owner may already be in
///   the second sum meanwhile: that writes array 1. Array 0 is written again behind the barriers of
///   the second sum. Likewise array 1, behind those of the next iteration's first sum.
/// - Memory between devices is the exchanges' (array/detail/exchange.hpp).
struct Kernel {
  meshpost::Exchange<double> halo_exchange, sums_exchange;
  meshpost::Window<double> data, history;
  meshpost::Window<DeviceReport> reports;
  DeviceMatrix matrix;
  Layout layout;
  Pieces pieces;
  Limits limits;
  u32 lanes;

  static constexpr int max_threads = 1024;  ///< of a rank on a GPU
  static constexpr u64 scratch = meshpost::apps::partials * sizeof(double);

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    Mine mine(*this, self);
    double const first = mine.sum(1, [r = mine.r](u64 i) { return r[i] * r[i]; });
    mine.clock.restart();
    double rho = first;
    Result result{};
    for (;; ++result.iterations) {
      if (mine.leads) history.local(self)[result.iterations] = rho;
      if (!limits.goes_on(rho, first, result)) break;
      mine.multiply();
      double const curvature = mine.sum(0, [p = mine.p, q = mine.q](u64 i) { return p[i] * q[i]; });
      mine.clock.next(Phase::sums);
      if (!limits.is_positive(curvature, result)) break;
      double const alpha = rho / curvature;
      double const next = mine.sum(1, Descend{alpha, mine.x, mine.r, mine.p, mine.q}, true);
      double const beta = next / rho;
      mine.clock.next(Phase::sums);
      self.each(mine.rows(), Turn{beta, mine.r + mine.first_row, mine.p + mine.first_row});
      mine.clock.next(Phase::vectors);
      rho = next;
    }
    if (mine.leads) {
      auto& report = reports.local(self)[0];
      report.result = result;
      for (u32 k = 0; k < phases; ++k) report.spent[k] = mine.clock.spent[k];
      report.seconds = mine.clock.all();
    }
    // q = A x, for the check
    self.each(mine.rows(), [&](u64 i) { mine.p[mine.first_row + i] = mine.x[mine.first_row + i]; });
    mine.multiply();
  }

 private:
  /// Time of this rank by phases.
  struct Clock {
    meshpost::Rank& self;
    u64 begin = 0, last = 0;
    double spent[phases] = {};

    MESHPOST_FN void restart() { begin = last = self.now(); }
    MESHPOST_FN void next(Phase phase) {
      u64 const now = self.now();
      spent[static_cast<u32>(phase)] += static_cast<double>(now - last) * 1e-9;
      last = now;
    }
    MESHPOST_FN double all() const { return static_cast<double>(last - begin) * 1e-9; }
  };

  /// A rank's part of the work.
  struct Mine {
    Kernel const& kernel;
    meshpost::Rank& self;
    Share share;
    Rows inner, outer;
    double *x, *r, *q, *p;
    u32 first_piece, last_piece;
    u64 first_row, last_row;  ///< of these pieces
    bool leads;               ///< thread 0 of the device's first rank
    Clock clock;
    meshpost::RankExchange<double> halo, gather;

    MESHPOST_FN Mine(Kernel const& of, meshpost::Rank& rank)
        : kernel(of),
          self(rank),
          share(of.matrix.share.local(rank)[0]),
          inner(of.matrix.inner(rank)),
          outer(DeviceMatrix::outer_of(inner, share)),
          clock{rank},
          halo(rank, of.halo_exchange),
          gather(rank, of.sums_exchange) {
      double* const all = of.data.local(rank).data();
      auto const& layout = of.layout;
      x = all + layout.x(), r = all + layout.r(), q = all + layout.q(), p = all + layout.p();
      u64 const rank_id = rank.local_id(), ranks = rank.local_size();
      first_piece = static_cast<u32>(share.pieces * rank_id / ranks);
      last_piece = static_cast<u32>(share.pieces * (rank_id + 1) / ranks);
      first_row = smaller(first_piece * of.pieces.height, share.own);
      last_row = smaller(last_piece * of.pieces.height, share.own);
      leads = rank.local_id() == 0 && rank.thread() == 0;
    }
    MESHPOST_FN static u64 smaller(u64 a, u64 b) { return a < b ? a : b; }
    MESHPOST_FN u64 rows() const { return last_row - first_row; }

    // Cold, as the next: the code of an exchange is long, and is there once.

    /// q = A p. Ends with a barrier of the device.
    MESHPOST_COLD void multiply() {
      auto const vector = kernel.data.local(self).subspan(kernel.layout.p(), share.size);
      u64 const* const bounds = kernel.matrix.bounds.local(self).data() + self.local_id();
      u64 const* const outer_bounds = bounds + self.local_size() + 1;
      halo.start(vector);
      clock.next(Phase::exchange);
      cg::multiply(inner, kernel.lanes, bounds[0], bounds[1], self.thread(), self.threads(), p, q);
      clock.next(Phase::product);
      halo.finish(vector);
      clock.next(Phase::exchange);
      cg::multiply(outer, kernel.lanes, outer_bounds[0], outer_bounds[1], self.thread(),
                   self.threads(), p, q);
      self.barrier(self.device_communicator());
      clock.next(Phase::product);
    }

    /// The sum of term(i) over all rows of all devices. `updates`: the term changes vectors, too.
    template <class Term>
    MESHPOST_FN double sum(u32 which, Term const& term, bool updates = false) {
      sum_pieces(kernel.pieces.height, share.own, first_piece, last_piece, self.thread(),
                 self.threads(), sums(which).data(), term);
      if (updates) clock.next(Phase::vectors);
      return add_up(which);
    }
    MESHPOST_FN meshpost::LocalSpan<double> sums(u32 which) const {
      return kernel.data.local(self).subspan(kernel.layout.piece_sums(which),
                                             kernel.pieces.count());
    }
    /// The sum of the sums of all pieces.
    MESHPOST_COLD double add_up(u32 which) {
      auto const all = sums(which);
      gather.start(all);
      gather.finish(all);
      return meshpost::apps::ordered_sum(
          kernel.pieces.count(), AllSums{all.data(), share.first_piece, share.pieces},
          self.thread(), self.threads(), self.scratch<double>(meshpost::apps::partials).data(),
          [&] { self.sync(); });
    }
  };
};

}  // namespace cg
