#pragma once
#include <memory>

#include "meshpost/rma/kernel.hpp"
#include "meshpost/rma/run.hpp"

namespace meshpost {

namespace detail {
struct GraphRecord;
}

/// Runs that are made once and launched together repeatedly, as one (World::launch). They follow
/// each other as single runs do: each begins when the one before has ended on all devices.
///
/// If all devices of a World are GPUs of one process that reach each other by loads and stores, the
/// runs are a CUDA graph on each GPU. The host then makes one launch for all runs. Otherwise
/// (several processes, CPU devices, logical devices of one GPU, a timeline, the host taking part)
/// the runs are launched one after the other. The result is the same.
///
/// A handle: copies are the same graph.
class Graph {
 public:
  Graph();

  /// Adds a run behind the runs added before. `kernel` is copied, with the windows and numbers it
  /// holds. Of `launch` it takes threads, scratch, thread_a_rank and user; the other fields are
  /// given when the graph is launched. \throws Error(bad_argument, misuse) if another field of
  /// `launch` is set, or the graph was launched
  template <class Kernel, bool nvcc = detail::by_nvcc>
  Graph& add(Kernel const& kernel, Launch const& launch = {}) {
    add(detail::image_of<Kernel, nvcc>(), &kernel, sizeof kernel, launch);
    return *this;
  }
  /// The same for kernels compiled elsewhere.
  void add(KernelImage const& image, void const* kernel, std::size_t bytes, Launch const& launch);
  std::size_t size() const;  ///< runs

 private:
  friend class World;
  std::shared_ptr<detail::GraphRecord> record_;
};

}  // namespace meshpost
