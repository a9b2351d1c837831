#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "common/enqueue.hpp"
#include "common/gather.hpp"
#include "common/study/study.hpp"
#include "keep.hpp"
#include "problem.hpp"
#include "tree.hpp"

namespace meshpost::apps::sparse {

/// The base of studies with a sparse matrix over a square of devices: the matrix, and a window for
/// vectors. Its parts are a device's whole block for each of its ranks.
class SquareStudy : public Study {
 public:
  std::vector<std::span<std::byte>> memories() const override {
    std::vector<std::span<std::byte>> all;
    for (u32 device = first_; device < end(); ++device)
      all.push_back(std::as_writable_bytes(data_.part(first_rank_of(world_, device))));
    return all;
  }

 protected:
  /// `elements` of vectors on each device. `scratch`: bytes that a rank needs. Collective.
  SquareStudy(World& world, Problem const& problem, u64 elements, Tags tags, u64 scratch)
      : world_(world),
        n_(problem.n()),
        square_(problem.square()),
        first_(world.first_rank() / world.ranks_per_device()),
        data_(world.window<double>(shared_parts(world, elements), tags, "vectors")),
        matrix_(place(world, problem)) {
    for (u32 device = first_; device < end(); ++device)
      blocks_.push_back(matrix_.of(world, device));
    u64 const kept = kept_bytes(problem.most_shared_rows(), problem.most_shared_entries());
    u64 const all = (scratch + kept) * ranks_per_processor(world);
    kept_ = in_all(world, all <= most_kept_bytes) && all_on_gpus(world);
    launch_.scratch = Bytes{scratch + (kept_ ? kept : 0)};
  }

  /// How the one kernel is launched.
  Launch const& launched(Launch const& launch) {
    launch_.trace = launch.trace;
    return launch_;
  }
  /// Devices of this process: from first() to end() - 1.
  u32 first() const { return first_; }
  u32 end() const { return first_ + static_cast<u32>(world_.devices().size()); }
  /// Rows of a block row, or columns of a block column.
  Range range(u32 block) const { return square_.range(block, n_); }
  /// The vectors and the block of a device of this process, for work on its stream.
  double* memory(u32 device) const { return data_.part(first_rank_of(world_, device)).data(); }
  Rows const& block(u32 device) const { return blocks_[device - first_]; }

  /// Work on the stream of a device of this process.
  template <class Work>
  static void put(Exchange const& exchange, u32 device, u64 items, Work const& work) {
    auto const& part = exchange.part(device);
    enqueue(*part.device, *part.stream, items, work);
  }
  /// Appends a message of elements.
  void send(u32 from, u32 to, u64 source, u64 target, u64 count) {
    u64 const size = sizeof(double);
    messages_.push_back({from, to, source * size, target * size, count * size});
  }
  /// Carries out the messages that were appended.
  void run(Exchange& exchange) {
    if (!messages_.empty()) exchange.run(messages_);
    messages_.clear();
  }
  /// Appends the messages of a level of the broadcast down the columns. The vector of row i of
  /// devices is at source(i), and goes to `target`.
  template <class Source>
  void send_level_down(u32 level, Source const& source, u64 target) {
    for (u32 j = 0; j < square_.side; ++j)
      for (u32 i = 0; i < square_.side; ++i)
        if (square_.sends(i, level))
          send(square_.device(i, j), square_.device(i + (1u << level), j), source(i), target,
               range(j).count());
  }
  /// add_along_row() for whole vectors.
  void add_along_rows(Exchange& exchange, u64 x, u64 inbox, u64 stride) {
    for (u32 level = 0; level < square_.levels(); ++level) {
      u64 const place = inbox + level * stride;
      std::vector<u32> receivers;
      for (u32 j = 0; j < square_.side; ++j)
        for (u32 i = 0; i < square_.side && square_.gathers(j, level); ++i) {
          u32 const to = square_.device(i, j);
          send(square_.device(i, j + (1u << level)), to, x, place, range(i).count());
          if (exchange.is_mine(to)) receivers.push_back(to);
        }
      run(exchange);
      for (u32 const device : receivers) {
        u32 const rows = range(square_.row_of(device)).count();
        put(exchange, device, rows, Add{rows, memory(device) + place, memory(device) + x});
      }
    }
  }

  /// Sets a device's vectors to NaN, for reset(): whatever is read must have been written.
  std::vector<double> poisoned(u64 elements) const {
    return std::vector<double>(elements, std::numeric_limits<double>::quiet_NaN());
  }
  /// The vector at `x` on the devices of the first column.
  std::vector<double> read_column(u64 x) const {
    std::vector<double> all(n_);
    for (u32 i = 0; i < square_.side; ++i)
      data_.read(first_rank_of(world_, square_.device(i, 0)), x,
                 std::span(all).subspan(range(i).first, range(i).count()));
    return all;
  }

  World& world_;
  u32 const n_;
  Square const square_;

 private:
  u32 first_;

 protected:
  Window<double> data_;
  DeviceMatrix matrix_;
  bool kept_ = false;  ///< ranks keep their rows in scratch memory

 private:
  std::vector<Rows> blocks_;
  std::vector<Message> messages_;
  Launch launch_;
};

}  // namespace meshpost::apps::sparse
