#pragma once
#include <meshpost/meshpost.hpp>

#include <memory>
#include <string>
#include <vector>

#include "block.hpp"
#include "measure.hpp"

namespace pingpong {

/// How often a step is repeated, and by which kernels.
struct Loop {
  Mode mode;
  u32 steps;
  Tasks tasks;
};

/// A grid over all devices, a block of n^3 points for each, and the loop pack, send, interior,
/// receive, unpack.
class Halo {
 public:
  /// \throws Error(bad_argument) unless there are at least two devices, as many as blocks
  Halo(std::shared_ptr<meshpost::World> world, Blocks blocks, u32 n);
  ~Halo();

  u64 points() const { return u64{blocks_.count()} * n_ * n_ * n_; }
  /// Sets the field of all points, x fastest; fills all other memory with NaN.
  void write(std::vector<double> const& field);
  /// After a loop of `steps` steps. \throws Error
  std::vector<double> read(u32 steps) const;
  /// \throws Error
  Took run(Loop const& loop);

 private:
  // Shared by the hosts of neighbours: a device's faces whose points have come.
  struct Arrivals {
    Flag of[faces];
  };
  meshpost::RankId rank_of(u32 device) const { return {device * world_->ranks_per_device()}; }
  u64 field_size() const { return u64{n_ + 2} * (n_ + 2) * (n_ + 2); }
  u64 global(u32 device, u32 i, u32 j, u32 k) const;
  Block block(u32 device, u32 step) const;
  template <class Work>
  void enqueue_on(u32 device, u64 items, Work const& work);
  void enqueue_pack(u32 device, u32 step, Range of);
  void enqueue_interior(u32 device, u32 step, Range of);
  void enqueue_unpack(u32 device, u32 step, Range of);
  void warm_up();
  void play_host(Loop const& loop, u32 device);
  void play_stream(Loop const& loop, u32 device);
  Took run_kernel(Loop const& loop);

  std::shared_ptr<meshpost::World> world_;
  Blocks blocks_;
  u32 n_;
  meshpost::Window<double> fields_;   // two of a device
  meshpost::Window<double> boxes_;    // of a device: two inboxes, then the outbox
  std::vector<double*> field_, box_;  // by device: its parts of the windows
  std::vector<meshpost::StreamEndpoint> ends_;
  std::vector<Arrivals> arrived_;  // by device
  Hosts hosts_;
};

/// The same grid in one piece, on the host.
std::vector<double> halo_reference(Blocks blocks, u32 n, std::vector<double> field, u32 steps);

}  // namespace pingpong
