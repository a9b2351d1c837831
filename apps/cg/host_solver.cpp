#include <algorithm>
#include <cstring>

#include "common/gather.hpp"
#include "common/study/exchange.hpp"
#include "common/study/kinds.hpp"
#include "common/study/study.hpp"
#include "plain.hpp"
#include "solver.hpp"
#include "stream_product.hpp"

namespace cg {

using namespace meshpost;
using apps::Message;

namespace {

// The messages of all processes, as each of them needs them. `source(part, entry)` and
// `target(part, there)`: elements of a device's memory.
template <class Source, class Target>
std::vector<Message> messages_of(Plan const& plan, JobMemory& job, Source const& source,
                                 Target const& target) {
  std::vector<Message> mine, all;
  for (u32 i = 0; i < plan.part_count(); ++i) {
    auto const& part = plan.of(plan.first_part() + i);
    for (auto const& entry : part.sends)
      mine.push_back({part.part, entry.part, source(entry) * sizeof(double),
                      target(entry.part, entry.there) * sizeof(double),
                      entry.count * sizeof(double)});
  }
  std::string bytes(mine.size() * sizeof(Message), '\0');
  std::memcpy(bytes.data(), mine.data(), bytes.size());
  for (auto const& text : gather(job, bytes)) {
    auto const before = all.size();
    all.resize(before + text.size() / sizeof(Message));
    std::memcpy(all.data() + before, text.data(), text.size());
  }
  return all;
}

// Of each device of this process.
struct HostWorker {
  Share share;
  std::shared_ptr<Device> device;
  Stream* stream;                  ///< of the exchange
  std::unique_ptr<Stream> beside;  ///< inner rows, while the host moves the halo
  std::unique_ptr<StreamProduct> inner, outer;
  Allocation places;  ///< of what is sent
  u64 sent;
  double *x, *r, *q, *p, *packed, *sums[2];

  template <class Work>
  void put(u64 items, Work const& work) const {
    apps::enqueue(*device, *stream, items, work);
  }
};

class HostSolver : public Solver {
 public:
  HostSolver(Problem const& problem, std::string const& against, bool cusparse)
      : problem_(problem), layout_(problem.layout()), cusparse_(cusparse && has_cusparse()) {
    auto& world = problem.world();
    std::vector<std::span<std::byte>> memories;
    for (u32 i = 0; i < problem.shares().size(); ++i)
      memories.push_back(std::as_writable_bytes(
          std::span(problem.memory(problem.first_device() + i), layout_.size())));
    exchange_ = apps::make_exchange(against, world, memories);
    {
      JobMemory job;
      auto const& rows = problem.halo_plan().distribution();
      halo_ = messages_of(
          problem.halo_plan(), job,
          [&](PlanEntry const& entry) { return layout_.packed() + entry.offset; },
          [&](u32 part, u64 there) { return layout_.p() + rows.size_of(part) + there; });
      auto const& pieces = problem.sums_plan().distribution();
      for (u32 which : {0u, 1u})  // a device sends all its sums, which are in their order already
        sums_[which] = messages_of(
            problem.sums_plan(), job, [&](PlanEntry const&) { return layout_.piece_sums(which); },
            [&](u32 part, u64 there) {
              return layout_.piece_sums(which) + pieces.size_of(part) + there;
            });
    }
    for (u32 i = 0; i < problem.shares().size(); ++i) workers_.push_back(make_worker(i));
    all_sums_.resize(problem.pieces().count());
  }

  std::string name() const override { return "host"; }
  std::string describe() const override {
    bool own = false, library = false;
    for (auto const& worker : workers_) (uses_cusparse(*worker.device) ? library : own) = true;
    std::string const product = library && own ? "cuSPARSE and plain loops"
                                : library      ? "cuSPARSE"
                                               : "plain kernels";
    return product + ", the host moves halos (" + exchange_->name() + ") and sums";
  }

  bool same_bits() const override {
    return std::ranges::none_of(workers_, [&](auto const& w) { return uses_cusparse(*w.device); });
  }

  Outcome solve(Limits const& limits, bool with_phases) override {
    problem_.reset();
    measured_ = with_phases;
    outcome_ = {};
    double const first = sum(1, [](HostWorker const& w) { return Square{w.r}; });
    double const begin = last_ = apps::now();
    for (double& spent : outcome_.spent) spent = 0;
    double rho = first;
    auto& result = outcome_.result;
    for (;; ++result.iterations) {
      outcome_.history.push_back(rho);
      if (!limits.goes_on(rho, first, result)) break;
      multiply();
      double const curvature = sum(0, [](HostWorker const& w) { return Times{w.p, w.q}; });
      if (!limits.is_positive(curvature, result)) break;
      double const alpha = rho / curvature;
      double const next =
          sum(1, [=](HostWorker const& w) { return Descend{alpha, w.x, w.r, w.p, w.q}; }, true);
      double const beta = next / rho;
      for (auto const& w : workers_) w.put(w.share.own, Each<Turn>{w.share.own, {beta, w.r, w.p}});
      done(Phase::vectors);
      rho = next;
    }
    for (auto const& w : workers_) w.stream->synchronize();
    outcome_.seconds = apps::now() - begin;
    measured_ = false;  // the product for the check belongs to no iteration
    for (auto const& w : workers_) w.put(w.share.own, Each<Copied>{w.share.own, {w.x, w.p}});
    multiply();
    for (auto const& w : workers_) w.stream->synchronize();
    return outcome_;
  }

 private:
  bool uses_cusparse(Device const& device) const { return cusparse_ && device.kind() == "cuda"; }

  HostWorker make_worker(u32 i) {
    u32 const number = problem_.first_device() + i;
    auto const& part = exchange_->part(number);
    HostWorker worker{};
    worker.share = problem_.shares()[i];
    worker.device = part.device;
    worker.stream = part.stream.get();
    worker.beside = part.device->make_stream();
    auto const product = [&](Stream& stream, Rows const& rows, u64 count, u64 entries) {
      Block const block{rows, count, entries, worker.share.size};
      if (uses_cusparse(*part.device) && entries > 0)
        return make_cusparse_product(part.device, stream, block);
      return make_plain_product(part.device, stream, block, problem_.lanes());
    };
    worker.inner = product(*worker.beside, problem_.inner(number), worker.share.inner,
                           worker.share.inner_entries);
    worker.outer = product(*worker.stream, problem_.outer(number), worker.share.outer,
                           worker.share.outer_entries);
    auto const& sent = problem_.halo_plan().of(number).sent;
    std::vector<u32> places;
    for (u64 k = 0; k < sent.count; ++k) places.push_back(static_cast<u32>(sent[k]));
    worker.sent = places.size();
    if (!places.empty()) {
      Bytes const size{places.size() * sizeof(u32)};
      worker.places = part.device->allocate(size, MemoryKind::device);
      part.device->write(worker.places.data(), places.data(), size);
    }
    double* const all = problem_.memory(number);
    worker.x = all + layout_.x(), worker.r = all + layout_.r();
    worker.q = all + layout_.q(), worker.p = all + layout_.p();
    worker.packed = all + layout_.packed();
    for (u32 which : {0u, 1u}) worker.sums[which] = all + layout_.piece_sums(which);
    return worker;
  }

  // Time since the last call, for a phase. If phases are measured, the work ends here.
  void done(Phase phase) {
    if (!measured_) return;
    for (auto const& w : workers_) w.stream->synchronize();
    double const now = apps::now();
    outcome_.spent[static_cast<u32>(phase)] += now - last_;
    last_ = now;
  }

  // q = A p. The inner rows read elements that are there already, and write elements of q that
  // outer rows don't write. So they go on while the host moves the halo. `stream` waits for them.
  // If phases are measured, they begin behind the halo.
  void multiply() {
    for (auto& w : workers_) {
      if (w.sent > 0) w.put(w.sent, Pack{w.p, w.places.as<u32>(), w.sent, w.packed});
      if (!measured_) start_inner(w);
    }
    exchange_->run(halo_);
    done(Phase::exchange);
    for (auto& w : workers_) {
      if (measured_) start_inner(w);
      w.stream->wait(w.beside->record());
      w.outer->enqueue(w.p, w.q);
    }
    done(Phase::product);
  }
  static void start_inner(HostWorker& w) {
    w.beside->wait(w.stream->record());
    w.inner->enqueue(w.p, w.q);
  }

  // The sum of a term over all rows of all devices, added by the host.
  template <class TermOf>
  double sum(u32 which, TermOf const& term_of, bool updates = false) {
    u64 const height = problem_.pieces().height;
    for (auto const& w : workers_) {
      auto const term = term_of(w);
      u64 const items = u64{w.share.pieces} * lanes_of_piece;
      w.put(items, SumPieces<decltype(term_of(w))>{height, w.share.own, w.share.pieces,
                                                   w.sums[which], term});
    }
    done(updates ? Phase::vectors : Phase::sums);
    exchange_->run(sums_[which]);
    auto const& w = workers_.front();
    w.stream->synchronize();  // if this device is alone, there was no message
    w.device->read(all_sums_.data(), w.sums[which], Bytes{all_sums_.size() * sizeof(double)});
    double partial[apps::partials];
    double const sum = apps::ordered_sum(
        problem_.pieces().count(), AllSums{all_sums_.data(), w.share.first_piece, w.share.pieces},
        0, 1, partial, [] {});
    done(Phase::sums);
    return sum;
  }

  Problem const& problem_;
  Layout layout_;
  bool cusparse_, measured_ = false;
  std::unique_ptr<apps::Exchange> exchange_;
  std::vector<Message> halo_, sums_[2];
  std::vector<HostWorker> workers_;
  std::vector<double> all_sums_;
  Outcome outcome_;
  double last_ = 0;
};

class PlainProduct : public StreamProduct {
 public:
  PlainProduct(std::shared_ptr<Device> device, Stream& stream, Block const& block, u32 lanes)
      : device_(std::move(device)), stream_(stream), block_(block), lanes_(lanes) {}
  void enqueue(double const* x, double* y) override {
    if (block_.count == 0) return;
    apps::enqueue(*device_, stream_, block_.count * lanes_,
                  Multiply{block_.rows, lanes_, block_.count, x, y});
  }

 private:
  std::shared_ptr<Device> device_;
  Stream& stream_;
  Block block_;
  u32 lanes_;
};

}  // namespace

std::unique_ptr<StreamProduct> make_plain_product(std::shared_ptr<Device> device, Stream& stream,
                                                  Block const& block, u32 lanes) {
  return std::make_unique<PlainProduct>(std::move(device), stream, block, lanes);
}

void require_devices(Problem const& problem, std::string const& mode) {
  if (apps::least(problem.world(), problem.shares().size()) > 0) return;
  throw Error(Kind::bad_argument, "--mode " + mode, "a process has no device",
              "give each process a device by --devices, or choose --mode kernel");
}

std::unique_ptr<Solver> make_host_solver(Problem const& problem, std::string const& against,
                                         bool cusparse) {
  require_devices(problem, "host");
  return std::make_unique<HostSolver>(problem, against, cusparse);
}

}  // namespace cg
