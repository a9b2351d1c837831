// COACCEL's streamed BLAS test: R and Q pass through the devices in chunks of columns.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>

#include "common/figures.hpp"
#include "sweep.hpp"

namespace {

using namespace meshpost;
using namespace blas_stream;

constexpr u64 buffer_limit =
    64'000'000;  // of one device, L and K with them: COACCEL's "less than 64 MB"

struct Report {
  std::vector<std::string> devices;
  std::vector<double> seconds, plain_seconds;  // of each iteration
  double first_error = 0, last_error = 0;
  bool right = true;
  // Times of one more iteration each: all stages at once, and one stage at a time. Of the slowest
  // device.
  double total = 0, in_turn = 0;
  std::vector<std::string> legs;
  std::vector<double> alone;
};

u64 choose_chunk(StreamOptions const& options, bool gpus) {
  u64 const resident = 2 * options.size.m * options.size.m * sizeof(double);
  u64 const room = buffer_limit > resident ? buffer_limit - resident : 0;
  u64 const fits = room / bytes_a_column(options, gpus) / 8 * 8;
  return std::clamp<u64>(fits, 8, 256);  // from 8 columns on, COACCEL had full speed
}

class Bar {
 public:
  Bar(bool on, u32 iterations) : on_(on), iterations_(iterations) {}
  ~Bar() {
    if (on_) std::fprintf(stderr, "\n");
  }
  Bar(Bar const&) = delete;
  Bar& operator=(Bar const&) = delete;
  void show(u32 iteration, double part) {
    auto const percent = static_cast<int>(100 * (iteration + part) / iterations_);
    if (!on_ || percent == shown_) return;
    shown_ = percent;
    std::fprintf(stderr, "\r[%-40.*s] %3d %%, iteration %u of %u", percent * 40 / 100,
                 "========================================", percent, iteration + 1, iterations_);
  }

 private:
  bool on_;
  u32 iterations_;
  int shown_ = -1;
};

void measure_stages(Streamed& streamed, Options const& options, Report& report) {
  report.total = streamed.iterate();
  report.in_turn = streamed.iterate({.timed = true, .one_at_a_time = true});
  for (auto const& share : streamed.shares()) {
    auto const& legs = share.pipeline->schedule().legs;
    report.alone.resize(legs.size());
    for (u64 leg = 0; leg < legs.size(); ++leg)
      report.alone[leg] = std::max(report.alone[leg], share.result.busy[leg]);
  }
  for (auto const& leg : streamed.shares()[0].pipeline->schedule().legs)
    report.legs.push_back(to_string(leg));
  if (options.trace.empty()) return;
  streamed.iterate({.timed = true});
  auto const& share = streamed.shares()[0];
  apps::write_text(options.trace,
                   to_perfetto(share.pipeline->schedule(), share.result, report.devices[0]));
}

Report measure(Options const& options) {
  Report report;
  auto const devices = open_devices(options.devices);
  for (auto const& device : devices)
    report.devices.push_back(device->name() + " (" + device->info().model + ")");
  auto const size = options.stream.size;
  auto const factors = make_factors(size.m, options.stream.seed);
  Streamed streamed(devices, options.stream, factors);

  std::vector<u64> all(size.n);
  std::iota(all.begin(), all.end(), 0);
  auto const cores = std::max(1u, std::thread::hardware_concurrency());
  std::unique_ptr<PlainRun> plain;
  if (options.plain > 0) {
    plain = std::make_unique<PlainRun>(size, std::move(all), factors, options.stream.seed);
    blas::use_openblas_threads(cores);
    for (u32 i = 0; i < options.plain; ++i) report.plain_seconds.push_back(plain->iterate());
  }
  if (!options.check) plain.reset();  // only its time was wanted
  blas::use_openblas_threads(1);
  std::optional<PlainRun> sample;
  if (options.check) {
    sample.emplace(size, edge_columns(options.stream, streamed), factors, options.stream.seed);
    for (u32 i = 0; i < options.iterations; ++i) sample->iterate();
  }

  {
    Bar bar(options.shows_progress(), options.iterations);
    for (u32 i = 0; i < options.iterations; ++i) {
      report.seconds.push_back(streamed.iterate({}, [&](u64 columns) {
        bar.show(i, static_cast<double>(columns) /
                        static_cast<double>(std::max<u64>(1, streamed.shares()[0].count)));
      }));
      if (plain && options.check && i + 1 == options.plain) {
        report.first_error = largest_error(*plain, size, streamed.r(), streamed.q());
        report.right = report.right && report.first_error <= error_bound(size.m, i + 1);
        plain.reset();
      }
    }
  }
  if (sample) {
    report.last_error = largest_error(*sample, size, streamed.r(), streamed.q());
    report.right = report.right && report.last_error <= error_bound(size.m, options.iterations);
  }
  u64 const memory = streamed.buffer_bytes() + streamed.resident_bytes();
  for (auto const& device : report.devices) std::printf("device      %s\n", device.c_str());
  std::printf("problem     m = %llu, n = %llu, chunks of %llu columns, depth %u, %s memory\n",
              size.m, size.n, options.stream.chunk, options.stream.depth, options.memory.c_str());
  std::printf("buffers     %.1f MB a device, with L and K %.1f MB\n",
              static_cast<double>(streamed.buffer_bytes()) * 1e-6,
              static_cast<double>(memory) * 1e-6);
  if (options.stages) measure_stages(streamed, options, report);
  return report;
}

int print(Options const& options, Report const& report) {
  auto const size = options.stream.size;
  double const seconds = median(report.seconds), plain = median(report.plain_seconds);
  double const flops =
      4.0 * static_cast<double>(size.m * size.m) * static_cast<double>(size.n) / seconds;
  double const bytes = 32.0 * static_cast<double>(size.m * size.n) / seconds;
  std::printf("iteration   %.4g s (median of %zu), %.4g GFlop/s, %.4g GB/s in and out\n", seconds,
              report.seconds.size(), flops * 1e-9, bytes * 1e-9);
  if (plain > 0)
    std::printf("plain BLAS  %.4g s on all cores: speed-up %.3g\n", plain, plain / seconds);
  double const slowest =
      report.alone.empty() ? 0 : *std::max_element(report.alone.begin(), report.alone.end());
  if (!report.alone.empty()) {
    for (std::size_t i = 0; i < report.legs.size(); ++i)
      std::printf("stage       %-8s %.4g s alone\n", report.legs[i].c_str(), report.alone[i]);
    std::printf("pipeline    %.4g s; slowest stage alone %.4g s (%.3g of it), all in turn %.4g s\n",
                report.total, slowest, report.total / slowest, report.in_turn);
  }
  if (options.check && options.plain > 0)
    std::printf("check       all columns, iteration %u: error %.2g of %.2g allowed\n",
                options.plain, report.first_error, error_bound(size.m, options.plain));
  if (options.check)
    std::printf("check       some columns, iteration %u: error %.2g of %.2g allowed: %s\n",
                options.iterations, report.last_error, error_bound(size.m, options.iterations),
                report.right ? "right" : "WRONG");
  else std::printf("check       not made\n");
  if (!options.json.empty()) {
    nlohmann::json const all = {{"devices", report.devices},
                                {"m", size.m},
                                {"n", size.n},
                                {"chunk", options.stream.chunk},
                                {"depth", options.stream.depth},
                                {"memory", options.memory},
                                {"seconds", report.seconds},
                                {"plain_seconds", report.plain_seconds},
                                {"gflops", flops * 1e-9},
                                {"stages", report.legs},
                                {"stage_seconds_alone", report.alone},
                                {"pipeline_seconds", report.total},
                                {"in_turn_seconds", report.in_turn},
                                {"checked", options.check},
                                {"trace", options.stages ? options.trace : ""},
                                {"errors", {report.first_error, report.last_error}},
                                {"right", report.right}};
    apps::write_figures(options.json, all);
  }
  return report.right ? 0 : 1;
}

}  // namespace

int blas_stream::run(Options options) {
  auto& stream = options.stream;
  options.plain = std::min(options.plain, options.iterations);
  stream.pageable = options.memory == "pageable";
  for (u64 const chunk : options.sweep.chunks)
    if (chunk > stream.size.n)
      throw Error(Kind::bad_argument, "--sweep " + std::to_string(chunk),
                  "there are only " + std::to_string(stream.size.n) + " columns",
                  "choose fewer columns, or a larger --n");
  if (!options.sweep.chunks.empty()) {
    options.sweep.check = options.check;
    options.sweep.json = options.json;
    return run_sweep(open_devices(options.devices), stream, options.sweep);
  }
  bool const gpus = open_devices(options.devices)[0]->kind() != "cpu";
  if (stream.chunk == 0) stream.chunk = choose_chunk(stream, gpus);
  stream.chunk = std::min(stream.chunk, stream.size.n);
  return print(options, measure(options));
}
