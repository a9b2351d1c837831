#include "sweep.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/figures.hpp"

namespace blas_stream {

using namespace meshpost;

namespace {

// Of the iteration that has just run, with time stamps.
double idle_share(Streamed const& streamed, double seconds) {
  double busy = 0, devices = 0;
  for (auto const& share : streamed.shares()) {
    if (share.count == 0) continue;  // more devices than columns
    devices += 1;
    auto const& legs = share.pipeline->schedule().legs;
    for (u64 leg = 0; leg < legs.size(); ++leg)
      if (legs[leg].stage == Stage::comp) busy += share.result.busy[leg];
  }
  return 1 - busy / (devices * seconds);
}

nlohmann::json json_of(Repeated const& kind) {
  return {{"seconds", kind.seconds}, {"idle", kind.idle}};
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

SweepPoint sweep_chunk(std::vector<std::shared_ptr<Device>> const& devices,
                       StreamOptions const& options, Factors const& factors, u32 repetitions,
                       bool check) {
  Streamed streamed(devices, options, factors);
  SweepPoint point;
  point.chunk = options.chunk;
  point.buffer_bytes = streamed.buffer_bytes();
  u32 iterations = 0;
  for (u32 repetition = 0; repetition <= repetitions; ++repetition)
    for (bool const in_turn : {false, true}) {
      auto& kind = in_turn ? point.synchronous : point.asynchronous;
      double const seconds = streamed.iterate({.one_at_a_time = in_turn});
      double const timed = streamed.iterate({.timed = true, .one_at_a_time = in_turn});
      iterations += 2;
      if (repetition == 0) continue;  // it touches memory and loads kernels for the first time
      kind.seconds.push_back(seconds);
      kind.idle.push_back(idle_share(streamed, timed));
    }
  if (check) {
    PlainRun plain(options.size, edge_columns(options, streamed), factors, options.seed);
    for (u32 i = 0; i < iterations; ++i) plain.iterate();
    point.error = largest_error(plain, options.size, streamed.r(), streamed.q());
    point.allowed = error_bound(options.size.m, iterations);
  }
  return point;
}

int run_sweep(std::vector<std::shared_ptr<Device>> const& devices, StreamOptions const& options,
              Sweep const& sweep) {
  auto const size = options.size;
  char const* const memory = options.pageable ? "pageable" : "pinned";
  auto const factors = make_factors(size.m, options.seed);
  nlohmann::json figures = {{"devices", nlohmann::json::array()},
                            {"m", size.m},
                            {"n", size.n},
                            {"depth", options.depth},
                            {"memory", memory},
                            {"checked", sweep.check},
                            {"sweep", nlohmann::json::array()}};
  for (auto const& device : devices) {
    figures["devices"].push_back(device->name() + " (" + device->info().model + ")");
    std::printf("device      %s (%s)\n", device->name().c_str(), device->info().model.c_str());
  }
  std::printf("problem     m = %llu, n = %llu, depth %u, %s memory, medians of %u\n", size.m,
              size.n, options.depth, memory, sweep.repetitions);
  std::printf("%8s  %-24s  %-24s\n", "columns", "asynchronous: s, idle", "synchronous: s, idle");
  blas::use_openblas_threads(1);
  bool right = true;
  for (u64 const chunk : sweep.chunks) {
    auto stream = options;
    stream.chunk = chunk;
    auto const point = sweep_chunk(devices, stream, factors, sweep.repetitions, sweep.check);
    right = right && point.error <= point.allowed;
    std::printf("%8llu  %-10.4g %5.1f %%         %-10.4g %5.1f %%%s\n", point.chunk,
                median(point.asynchronous.seconds), 100 * median(point.asynchronous.idle),
                median(point.synchronous.seconds), 100 * median(point.synchronous.idle),
                point.error <= point.allowed ? "" : "  WRONG");
    std::fflush(stdout);
    figures["sweep"].push_back({{"chunk", point.chunk},
                                {"buffer_bytes", point.buffer_bytes},
                                {"asynchronous", json_of(point.asynchronous)},
                                {"synchronous", json_of(point.synchronous)},
                                {"error", point.error},
                                {"allowed", point.allowed}});
  }
  figures["right"] = right;
  std::printf("check       %s\n", !sweep.check ? "not made" : right ? "right" : "WRONG");
  if (!sweep.json.empty()) meshpost::apps::write_figures(sweep.json, figures);
  return right ? 0 : 1;
}

}  // namespace blas_stream
