#include "common/study/study.hpp"
#include "kernel.hpp"
#include "solver.hpp"

namespace cg {

using namespace meshpost;

namespace {

class KernelSolver : public Solver {
 public:
  KernelSolver(Problem const& problem, u32 most, u32 threads, std::string const& trace)
      : problem_(problem), on_gpus_(apps::all_on_gpus(problem.world())) {
    auto& world = problem.world();
    if (on_gpus_) launch_.threads = {apps::threads_of_rank(world, threads), 1, 1};
    launch_.scratch = Bytes{Kernel::scratch};
    launch_.trace = trace;
    kernel_.halo_exchange = make_exchange<double>(world, problem.halo_plan(), "halo");
    kernel_.sums_exchange = make_exchange<double>(world, problem.sums_plan(), "sums");
    kernel_.data = problem.data();
    kernel_.history = world.window<double>(shared_parts(world, u64{most} + 1), Tags{0}, "history");
    kernel_.reports = world.window<DeviceReport>(shared_parts(world, 1), Tags{0}, "reports");
    kernel_.matrix = problem.matrix();
    kernel_.layout = problem.layout();
    kernel_.pieces = problem.pieces();
    kernel_.lanes = problem.lanes();
  }

  std::string name() const override { return "kernel"; }
  std::string describe() const override {
    return on_gpus_ ? std::to_string(kernel_.lanes) + " of " + std::to_string(launch_.threads.x) +
                          " threads a row, exchanges inside the kernel"
                    : "loops of the ranks, exchanges inside the kernel";
  }

  bool overlaps_in_phases() const override { return true; }

  Outcome solve(Limits const& limits, bool /*with_phases*/) override {
    problem_.reset();
    kernel_.limits = limits;
    problem_.world().run(kernel_, launch_);
    Outcome outcome;
    auto const report = kernel_.reports.read(RankId{0})[0];
    outcome.result = report.result;
    outcome.seconds = report.seconds;
    for (u32 k = 0; k < phases; ++k) outcome.spent[k] = report.spent[k];
    outcome.history.resize(report.result.iterations + 1);
    kernel_.history.read(RankId{0}, 0, std::span(outcome.history));
    return outcome;
  }

 private:
  Problem const& problem_;
  bool on_gpus_;
  Launch launch_;
  Kernel kernel_{};
};

}  // namespace

std::unique_ptr<Solver> make_kernel_solver(Problem const& problem, u32 most, u32 threads,
                                           std::string const& trace) {
  return std::make_unique<KernelSolver>(problem, most, threads, trace);
}

}  // namespace cg
