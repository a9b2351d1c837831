#pragma once
#include <string>
#include <vector>

#include "streamed.hpp"

namespace blas_stream {

/// Iterations of one kind of pipeline.
struct Repeated {
  std::vector<double> seconds;  ///< of iterations without time stamps
  std::vector<double> idle;     ///< share of an iteration in which a device does not compute
};

/// Both kinds of pipeline with one size of chunks.
struct SweepPoint {
  u64 chunk = 0;  ///< columns
  u64 buffer_bytes = 0;
  Repeated asynchronous;  ///< all stages at once
  Repeated synchronous;   ///< one stage at a time: transfers and computation do not overlap
  double error = 0, allowed = 0;
};

/// Runs the pipelines with each size of chunks: `repetitions` times both kinds in turns, after one
/// time that does not count. The idle share is 1 - (time of COMP) / (time of the iteration), both
/// of the same iteration, which has time stamps; the mean of the devices. With `check` columns at
/// the edges of chunks and shares are compared with plain BLAS at the end.
/// \throws what Streamed and Pipeline::run throw
SweepPoint sweep_chunk(std::vector<std::shared_ptr<meshpost::Device>> const& devices,
                       StreamOptions const& options, Factors const& factors, u32 repetitions,
                       bool check);

/// sweep_chunk() for all chunks; prints and writes. Returns the exit status: 1 if a result is
/// wrong.
/// \throws std::runtime_error if the file can't be written
int run_sweep(std::vector<std::shared_ptr<meshpost::Device>> const& devices,
              StreamOptions const& options, Sweep const& sweep);

double median(std::vector<double> values);

}  // namespace blas_stream
