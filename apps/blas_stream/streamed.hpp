#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/pipeline/group.hpp"
#include "meshpost/pipeline/pipeline.hpp"
#include "problem.hpp"

namespace blas_stream {

/// One device's share: columns [first, first + count), its pipeline, and L and K in its memory.
struct Share {
  u64 first = 0, count = 0;
  meshpost::Allocation l{}, k{};
  std::unique_ptr<meshpost::Pipeline> pipeline{};
  std::optional<meshpost::blas::Blas>
      blas{};  // uses the pipeline's stream, so it is destroyed first
  meshpost::PipelineResult result{};
};

/// R and Q in the host's memory, streamed through all devices at once. One thread serves each
/// device.
class Streamed {
 public:
  using Progress =
      std::function<void(u64 columns)>;  ///< calls from one thread, of the first device

  Streamed(std::vector<std::shared_ptr<meshpost::Device>> const& devices,
           StreamOptions const& options, Factors const& factors);

  /// Runs one iteration. Returns the seconds until the slowest device is done. Devices are
  /// synchronised before and after.
  double iterate(meshpost::PipelineRun const& how = {}, Progress const& progress = {});

  double const* r() const { return r_.as<double>(); }
  double const* q() const { return q_.as<double>(); }
  std::vector<Share> const& shares() const { return shares_; }
  /// Chunk buffers of one device, and with them L and K.
  u64 buffer_bytes() const;
  u64 resident_bytes() const;

 private:
  void prepare(meshpost::Member const& member, Factors const& factors);
  void compute(meshpost::Member const& member, meshpost::ChunkWork const& work,
               meshpost::Stream& stream);

  StreamOptions options_;
  meshpost::Allocation r_, q_;
  std::vector<Share> shares_;
  Progress progress_;
  std::unique_ptr<meshpost::DeviceGroup> group_;  // its threads use the rest
};

/// Columns to compute by plain BLAS too: those at the edges of shares and chunks, and some more.
std::vector<u64> edge_columns(StreamOptions const& options, Streamed const& streamed);

/// Chunk buffers that one device has for each column of a chunk, in bytes.
u64 bytes_a_column(StreamOptions const& options, bool gpus);

}  // namespace blas_stream
