#include <algorithm>
#include <deque>

#include "common/study/kinds.hpp"
#include "common/study/study.hpp"
#include "plain.hpp"
#include "solver.hpp"
#include "stream_product.hpp"

namespace cg {

using namespace meshpost;

namespace {

/// Numbers of a device that its stream makes. The same on all devices.
struct Scalars {
  double rho, first, alpha, beta;
  Result result;
  u32 ended;
};

/// Adds the sums of all pieces, and decides how the iteration goes on. For one block of threads.
struct Decide {
  enum class After { start, curvature, descent } after;
  Limits limits;
  u32 pieces;
  AllSums sums;
  Scalars* scalars;
  double* history;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
#if defined(__CUDA_ARCH__)
    __shared__ double partial[apps::partials];
    auto const sync = [] { __syncthreads(); };
#else
    double partial[apps::partials];
    auto const sync = [] {};
#endif
    double const sum = apps::ordered_sum(pieces, sums, static_cast<u32>(first),
                                         static_cast<u32>(stride), partial, sync);
    auto& s = *scalars;
    if (first > 0 || s.ended != 0) return;
    if (after == After::curvature) {
      if (limits.is_positive(sum, s.result)) s.alpha = s.rho / sum;
      else s.ended = 1;
      return;
    }
    if (after == After::start) {
      s.first = sum;
    } else {
      s.beta = sum / s.rho;
      ++s.result.iterations;
    }
    s.rho = sum;
    history[s.result.iterations] = sum;
    if (!limits.goes_on(sum, s.first, s.result)) s.ended = 1;
  }
};

/// Descend, with its sums, unless the iterations have ended.
struct DescendOnStream {
  Scalars const* scalars;
  Descend step;  ///< without alpha
  u64 height, own;
  u32 pieces;
  double* sums;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    if (scalars->ended != 0) return;
    Descend const descend{scalars->alpha, step.x, step.r, step.p, step.q};
    sum_pieces(height, own, 0, pieces, first, stride, sums, descend);
  }
};

/// Turn, likewise.
struct TurnOnStream {
  Scalars const* scalars;
  u64 own;
  double const* r;
  double* p;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    if (scalars->ended != 0) return;
    Turn const turn{scalars->beta, r, p};
    for (u64 i = first; i < own; i += stride) turn(i);
  }
};

// Of each device of this process.
struct StreamWorker {
  Share share;
  std::shared_ptr<Device> device;
  std::unique_ptr<StreamProduct> inner, outer;
  Allocation memory;  ///< Scalars, then the history
  Scalars* scalars;
  double* history;
  double *x, *r, *q, *p, *sums[2];
};

// Kernels of an iteration go to the streams without a look at their results. So some iterations
// are queued behind the last one. They change nothing: `ended` says so.
class StreamSolver : public Solver {
 public:
  StreamSolver(Problem const& problem, u32 most, bool cusparse)
      : problem_(problem), cusparse_(cusparse && has_cusparse()) {
    auto& world = problem.world();
    auto const devices = static_cast<u32>(world.devices().size());
    std::vector<std::reference_wrapper<StreamEndpoint const>> streams;
    for (u32 i = 0; i < devices; ++i) endpoints_.emplace_back(world, i, "cg");
    for (auto const& endpoint : endpoints_) streams.emplace_back(endpoint);
    halo_ = StreamExchange<double>(world, problem.halo_plan(), streams, "halo of streams");
    gather_ = StreamExchange<double>(world, problem.sums_plan(), streams, "sums of streams");
    for (u32 i = 0; i < devices; ++i) workers_.push_back(make_worker(i, most));
    for (auto& one : seen_)
      one = workers_.front().device->allocate(Bytes{sizeof(Scalars)}, MemoryKind::pinned);
  }

  std::string name() const override { return "stream"; }
  std::string describe() const override {
    bool const library =
        std::ranges::any_of(workers_, [&](auto const& w) { return uses_cusparse(*w.device); });
    return std::string(library ? "cuSPARSE" : "plain kernels") +
           ", streams exchange halos and sums";
  }
  bool same_bits() const override {
    return std::ranges::none_of(workers_, [&](auto const& w) { return uses_cusparse(*w.device); });
  }

  Outcome solve(Limits const& limits, bool with_phases) override {
    problem_.reset();
    limits_ = limits;
    measured_ = with_phases;
    outcome_ = {};
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      w.device->fill(w.scalars, 0, Bytes{sizeof(Scalars)});
      sum(d, 1, SumPieces<Square>{height(), w.share.own, w.share.pieces, w.sums[1], {w.r}});
    }
    for (u32 d = 0; d < workers_.size(); ++d) decide(d, 1, Decide::After::start);
    synchronize();
    double const begin = last_ = apps::now();
    for (double& spent : outcome_.spent) spent = 0;
    iterate();
    synchronize();
    outcome_.seconds = apps::now() - begin;

    auto const& front = workers_.front();
    Scalars scalars{};
    front.device->read(&scalars, front.scalars, Bytes{sizeof scalars});
    outcome_.result = scalars.result;
    outcome_.history.resize(scalars.result.iterations + 1);
    front.device->read(outcome_.history.data(), front.history,
                       Bytes{outcome_.history.size() * sizeof(double)});
    measured_ = false;
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      put(d, w.share.own, Each<Copied>{w.share.own, {w.x, w.p}});
    }
    multiply();
    synchronize();
    return outcome_;
  }

 private:
  bool uses_cusparse(Device const& device) const { return cusparse_ && device.kind() == "cuda"; }
  u64 height() const { return problem_.pieces().height; }

  StreamWorker make_worker(u32 i, u32 most) {
    u32 const number = problem_.first_device() + i;
    StreamWorker worker{};
    worker.share = problem_.shares()[i];
    worker.device = problem_.world().devices()[i];
    auto const product = [&](Rows const& rows, u64 count, u64 entries) {
      Block const block{rows, count, entries, worker.share.size};
      auto& stream = endpoints_[i].stream();
      if (uses_cusparse(*worker.device) && entries > 0)
        return make_cusparse_product(worker.device, stream, block);
      return make_plain_product(worker.device, stream, block, problem_.lanes());
    };
    worker.inner = product(problem_.inner(number), worker.share.inner, worker.share.inner_entries);
    worker.outer = product(problem_.outer(number), worker.share.outer, worker.share.outer_entries);
    worker.memory = worker.device->allocate(
        Bytes{sizeof(Scalars) + (u64{most} + 1) * sizeof(double)}, MemoryKind::device);
    worker.scalars = worker.memory.as<Scalars>();
    worker.history = reinterpret_cast<double*>(worker.scalars + 1);
    double* const all = problem_.memory(number);
    auto const& layout = problem_.layout();
    worker.x = all + layout.x(), worker.r = all + layout.r();
    worker.q = all + layout.q(), worker.p = all + layout.p();
    for (u32 which : {0u, 1u}) worker.sums[which] = all + layout.piece_sums(which);
    // The library loads its kernels now, not while another device waits for this one.
    worker.inner->enqueue(worker.p, worker.q);
    worker.outer->enqueue(worker.p, worker.q);
    endpoints_[i].synchronize();
    return worker;
  }

  template <class Work>
  void put(u32 d, u64 items, Work const& work) {
    apps::enqueue(*workers_[d].device, endpoints_[d].stream(), items, work);
  }
  void synchronize() {
    for (auto& endpoint : endpoints_) endpoint.synchronize();
  }
  // As for the host's mode.
  void done(Phase phase) {
    if (!measured_) return;
    synchronize();
    double const now = apps::now();
    outcome_.spent[static_cast<u32>(phase)] += now - last_;
    last_ = now;
  }

  // Queues some iterations, then looks at the result of those queued before. All devices have the
  // same result, so all processes queue equally many.
  void iterate() {
    constexpr u32 some = 4;
    std::shared_ptr<Event> before;
    for (u32 queued = 0, round = 0; queued < limits_.iterations; ++round) {
      u32 const now = std::min(some, limits_.iterations - queued);
      for (u32 k = 0; k < now; ++k) step();
      queued += now;
      auto& stream = endpoints_.front().stream();
      stream.copy(seen_[round % 2].data(), workers_.front().scalars, Bytes{sizeof(Scalars)});
      auto event = stream.record();
      if (before) {
        before->wait();
        if (seen_[(round + 1) % 2].as<Scalars>()->ended != 0) return;
      }
      before = std::move(event);
    }
  }

  void step() {
    multiply();
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      sum(d, 0, SumPieces<Times>{height(), w.share.own, w.share.pieces, w.sums[0], {w.p, w.q}});
    }
    for (u32 d = 0; d < workers_.size(); ++d) decide(d, 0, Decide::After::curvature);
    done(Phase::sums);
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      sum(d, 1,
          DescendOnStream{w.scalars,
                          {0, w.x, w.r, w.p, w.q},
                          height(),
                          w.share.own,
                          w.share.pieces,
                          w.sums[1]});
    }
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      decide(d, 1, Decide::After::descent);
      put(d, w.share.own, TurnOnStream{w.scalars, w.share.own, w.r, w.p});
    }
    done(Phase::vectors);
  }

  // q = A p. Inner rows read no halo, so it comes meanwhile. If phases are measured, it does not.
  void multiply() {
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      halo_.start(d, std::span<double const>(w.p, w.share.size));
      if (!measured_) w.inner->enqueue(w.p, w.q);
    }
    for (u32 d = 0; d < workers_.size(); ++d)
      halo_.finish(d, std::span(workers_[d].p, workers_[d].share.size));
    done(Phase::exchange);
    for (u32 d = 0; d < workers_.size(); ++d) {
      auto const& w = workers_[d];
      if (measured_) w.inner->enqueue(w.p, w.q);
      w.outer->enqueue(w.p, w.q);
    }
    done(Phase::product);
  }

  // All devices start an exchange before any waits: streams of logical devices may share a queue of
  // their GPU.

  // Puts `pieces`, which makes the sums of the device's pieces, and sends them.
  template <class Sum>
  void sum(u32 d, u32 which, Sum const& pieces) {
    auto const& w = workers_[d];
    put(d, u64{w.share.pieces} * lanes_of_piece, pieces);
    gather_.start(d, std::span<double const>(w.sums[which], problem_.pieces().count()));
  }
  // Waits for those of the others, and decides.
  void decide(u32 d, u32 which, Decide::After after) {
    auto const& w = workers_[d];
    u32 const count = problem_.pieces().count();
    gather_.finish(d, std::span(w.sums[which], count));
    put(d, apps::partials,
        Decide{after, limits_, count, AllSums{w.sums[which], w.share.first_piece, w.share.pieces},
               w.scalars, w.history});
  }

  Problem const& problem_;
  bool cusparse_, measured_ = false;
  std::deque<StreamEndpoint> endpoints_;
  StreamExchange<double> halo_, gather_;
  std::vector<StreamWorker> workers_;
  Allocation seen_[2];  ///< Scalars of the first device, as copied behind some iterations
  Limits limits_{};
  Outcome outcome_;
  double last_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_stream_solver(Problem const& problem, u32 most, bool cusparse) {
  require_devices(problem, "stream");
  return std::make_unique<StreamSolver>(problem, most, cusparse);
}

}  // namespace cg
