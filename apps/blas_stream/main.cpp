// The command line of blas_stream.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  blas_stream::Options options;
  auto& stream = options.stream;
  CLI::App app{
      "COACCEL's streamed BLAS test: R = (Q-R)/2, Q = (Q+R)/2, R = L R, Q = K Q, R = R+Q, "
      "Q = R-Q with L, K (m x m) resident and R, Q (m x n) streamed in chunks of columns"};
  apps::add_common(app, "blas_stream", options,
                   {.check = "compare with plain BLAS calls",
                    .refused = {{"--ranks", "its pipelines have no ranks"}}});
  auto const number = [&](char const* name, auto& target, char const* what, u64 most) {
    app.add_option(name, target, what)->capture_default_str()->check(CLI::Range(u64{1}, most));
  };
  number("-m,--m", stream.size.m, "rows of R and Q", 1 << 16);
  number("-n,--n", stream.size.n, "columns of R and Q", u64{1} << 40);
  number("--iterations", options.iterations, "times that all columns pass through", 1'000'000);
  number("--chunk", stream.chunk, "columns at a time; default: what 64 MB of buffers allow",
         1 << 20);
  auto* const sweep =
      app.add_option("--sweep", options.sweep.chunks,
                     "only measure chunks of so many columns, 1,2,4,8, each in an asynchronous and "
                     "a synchronous pipeline: times, and the share in which devices are idle")
          ->delimiter(',')
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->check(CLI::Range(u64{1}, u64{1} << 20));
  for (auto const* const other : {"--chunk", "--iterations"}) sweep->excludes(other);
  app.add_option("--repetitions", options.sweep.repetitions, "of a sweep: runs of each kind")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000u))
      ->needs(sweep);
  number("--depth", stream.depth, "chunks that each buffer has room for", 64);
  app.add_option("--memory", options.memory,
                 "of R and Q: pinned, or pageable with a level of pinned buffers before GPUs")
      ->capture_default_str()
      ->check(CLI::IsMember({"pinned", "pageable"}));
  app.add_option("--plain", options.plain,
                 "iterations to repeat by plain BLAS calls on all cores, and compare in full")
      ->capture_default_str();
  app.add_option("--seed", stream.seed, "seed of all matrices")->capture_default_str();
  app.add_flag("--stages,!--no-stages", options.stages,
               "measure each stage alone, in further iterations (default)");
  app.add_option("--trace", options.trace, "file for the first device's timeline");
  for (auto const* const other : {"--plain", "--stages", "--trace"}) sweep->excludes(other);
  return apps::run_app(app, argc, argv, options, "blas_stream", "--m or --n",
                       [&] { return blas_stream::run(options); });
}
