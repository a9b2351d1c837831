// The command line of gemm.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  gemm::Options options;
  gemm::Texts texts;
  CLI::App app{"C = A B with matrices spread over the devices, which fetch each other's parts"};
  apps::add_common(app, "gemm", options,
                   {.check = "compare with one device's product, and Freivalds' check",
                    .refused = {{"--ranks", "products are made by BLAS, without ranks"}}});
  auto* const one = app.add_option("--size,--n", texts.size,
                                   "N, or M,N,K: A is MxK, B is KxN; max: the largest N that fits")
                        ->capture_default_str();
  app.add_option("--sweep", texts.sweep,
                 "several N: 500,1000:20000:1000 (FIRST:LAST:STEP); seed: these and 11000:11050:1")
      ->excludes(one);
  app.add_option("--type", texts.type, "numbers: double, float, tf32 or bf16")
      ->capture_default_str();
  app.add_option("--grid", texts.grid, "ROWSxCOLUMNS of devices; default: near to a square");
  app.add_option("--peer", texts.peer, "on: GPUs read each other's memory; off: through the host")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--ipc", texts.ipc, "processes: on maps each other's memory; off: owners send")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--order", texts.order,
                 "of fetches: links (fast ones first), numbers (of near devices first) or k")
      ->capture_default_str()
      ->check(CLI::IsMember({"links", "numbers", "k"}));
  app.add_option("--memory", options.memory,
                 "bytes of each memory that may be used: 64M; default: all but 512M of the free")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(u64{1}, u64{1} << 50));
  app.add_option("--reuse", options.reuse, "also so many products in a row: each C is the next A")
      ->check(CLI::Range(2u, 8u));
  app.add_flag("--schedules", options.schedules, "also other orders of fetches and buffers");
  app.add_option("--repeat", options.repeat, "measurements of each time; the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  app.add_option("--panel", options.panel, "columns of A, rows of B in a fetch; default by N")
      ->check(CLI::PositiveNumber);
  app.add_option("--slots", options.slots, "buffers for fetches of A, and of B")
      ->capture_default_str()
      ->check(CLI::Range(1u, 64u));
  app.add_option("--threads", options.threads, "of each CPU device; default: its share of cores")
      ->check(CLI::Range(1u, 4096u));
  app.add_option("--seed", options.seed, "seed of the random matrices; default: a new one");
  return apps::run_app(app, argc, argv, options, "gemm", "--size", [&] {
    gemm::read_texts(texts, options);
    return gemm::run(options);
  });
}
