// The command line of cg.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "common/grid_text.hpp"
#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  cg::Options options;
  CLI::App app{"Solves A x = b by conjugate gradients, with A's rows spread over all devices"};
  apps::add_common(app, "cg", options,
                   {.check = "",
                    .refused = {{"--check", "modes are always compared"},
                                {"--progress", "there is no bar here"}}});
  auto* const laplacian =
      app.add_option("--laplacian", options.matrix.laplacian, "points of its stencil: 5, 7 or 27")
          ->capture_default_str()
          ->check(CLI::IsMember({5, 7, 27}));
  auto* const grid =
      apps::add_grid(app, options.matrix.grid, "points of the grid (" + options.matrix.grid + ")");
  app.add_option("--matrix", options.matrix.file,
                 "Matrix Market file of a symmetric matrix to take instead")
      ->excludes(laplacian)
      ->excludes(grid);
  app.add_option("--shift", options.matrix.shift, "added to each element of the diagonal");
  app.add_option("--mode", options.mode,
                 "kernel: one for all iterations; host: a kernel an operation, the host moves "
                 "halos and sums; stream: streams exchange them; all: each, one after the other")
      ->capture_default_str()
      ->check(CLI::IsMember({"kernel", "host", "stream", "all"}));
  app.add_option("--against", options.against,
                 "how the host moves halos: copies (of this library), mpi, nccl, or auto")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "copies", "mpi", "nccl"}));
  app.add_option("--shares", options.shares,
                 "rows of each device of all processes in proportion to these: 3,1")
      ->delimiter(',');
  app.add_option("--iterations", options.limits.iterations, "at most so many")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10'000'000u));
  app.add_option("--tolerance", options.limits.tolerance,
                 "ends when |r| is at most so much of |b|; 0: after --iterations")
      ->capture_default_str()
      ->check([](std::string const& text) {
        char* end = nullptr;
        double const given = std::strtod(text.c_str(), &end);
        if (*end == '\0' && given >= 0 && given < 1) return std::string();
        return text + " is no number from 0 on and below 1; give one such as 1e-8, or 0 for all " +
               "--iterations";
      });
  app.add_option("--seed", options.seed, "number that b depends on")->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "timed runs of each mode")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000u));
  app.add_flag("--cusparse,!--no-cusparse", options.cusparse,
               "products by cuSPARSE on GPUs, except in mode kernel (default, if built in)");
  app.add_option("--threads", options.threads,
                 "threads of a rank on a GPU in mode kernel; of all that share a multiprocessor")
      ->capture_default_str()
      ->check(CLI::Range(32u, 1024u));
  app.add_option("--threads-per-row", options.lanes,
                 "threads of a GPU that share a row; 0: by the mean length of rows")
      ->check(CLI::IsMember({0, 2, 4, 8, 16, 32}));
  app.add_option("--output", options.output, "file for x, as .npy");
  app.add_option("--trace", options.trace, "file for the timeline of the last run of the kernel");
  return apps::run_app(app, argc, argv, options, "cg", "--grid", [&] { return cg::run(options); });
}
