#pragma once
#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "meshpost/array/detail/grid_kernel.hpp"
#include "meshpost/array/grid_options.hpp"
#include "meshpost/array/stream_exchange.hpp"

// clang-format off
// A grid's steps by streams: each device has one, and each stage is
//
//     start(F) | inner tiles | finish(F) | outer tiles
//
// on it, the tiles by plain kernels. So no two of them overlap on a device, and each sees what the
// ones before have stored. Between devices the exchange keeps order.
//
// If a stage takes a GPU longer than the host needs to queue it, the inner tiles have a stream of
// their own:
//
//     start(F) | finish(F) | outer tiles        urgent
//     inner tiles                               beside these
//
// The outer tiles of a stage come before the inner tiles of the next one, and the inner tiles before
// its start (events). So a stage sees all of the one before. Inner and outer tiles of one stage read
// the same field and store other cells of another one; inner tiles read no halo, and elements that
// are sent are only read. The GPU gives places that become free to the urgent stream, so its
// kernels run in the shadow of the inner tiles.
// clang-format on

namespace meshpost::detail {

/// The thread of a CPU device's stream as a team.
struct GridThread {
  MESHPOST_FN u32 thread() const { return 0; }
  MESHPOST_FN u32 threads() const { return 1; }
  MESHPOST_FN void sync() const {}
  MESHPOST_FN bool any(bool yes) const { return yes; }
};

#if defined(__CUDACC__)
/// A block of a plain kernel as a team. Its threads lie along x.
struct GridBlock {
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool yes) const { return __syncthreads_or(yes) != 0; }
};

template <class Work>
__global__ void grid_work_kernel(__grid_constant__ Work const work) {
  work(GridBlock(), blockIdx.x, gridDim.x);
}

/// Notes the kernel when the program begins: a kernel that is loaded at its first launch waits for
/// all streams of its GPU (NotedEntries).
template <class Work>
struct NotedGridWork {
  static bool note() {
    note_gpu_entry(reinterpret_cast<void const*>(&grid_work_kernel<Work>));
    return true;
  }
  static inline bool const noted = note();
};
#endif

/// The first exception of work on the streams of CPU devices.
class GridFailure {
 public:
  void keep(std::exception_ptr failure) {
    std::lock_guard const lock(mutex_);
    if (!first_) first_ = std::move(failure);
  }
  void rethrow() {
    std::lock_guard const lock(mutex_);
    if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

struct GridTeams {
  u64 items;    ///< as many teams, or fewer
  u32 threads;  ///< of a block
};

/// Puts work(team, number, teams) on a stream.
template <class Work, bool nvcc>
void enqueue_teams(Device const& device, Stream& stream, GridTeams const& teams, Work const& work,
                   std::shared_ptr<GridFailure> const& failure) {
  if (teams.items == 0) return;
#if defined(__CUDACC__)
  static_cast<void>(NotedGridWork<Work>::noted);
  if (stream.native()) {
    int before = 0;
    auto status = cudaGetDevice(&before);
    if (status == cudaSuccess) status = cudaSetDevice(static_cast<int>(device.index()));
    if (status == cudaSuccess) {
      auto const blocks = static_cast<u32>(std::min<u64>(teams.items, u64{1} << 30));
      grid_work_kernel<<<blocks, teams.threads, 0, static_cast<cudaStream_t>(stream.native())>>>(
          work);
      status = cudaGetLastError();
      cudaSetDevice(before);
    }
    if (status != cudaSuccess)
      throw Error(Kind::device_failed, "Grid::run: launch a kernel on " + device.name(),
                  cudaGetErrorString(status), "see the driver's log");
    return;
  }
#else
  if (stream.native())
    throw Error(Kind::bad_argument, "Grid::run: launch a kernel on " + device.name(),
                "the scheme was not compiled for GPUs",
                "compile its source with nvcc: meshpost_add_executable does it");
#endif
  stream.call([work, failure] {
    try {
      work(GridThread(), 0, 1);
    } catch (std::exception const& thrown) {
      failure->keep(std::make_exception_ptr(Error(Kind::kernel_failed, "Grid::run",
                                                  std::string("the scheme threw: ") + thrown.what(),
                                                  "see the scheme")));
    } catch (...) {
      failure->keep(std::current_exception());
    }
  });
}

template <class T, class Scheme>
struct GridWork {
  enum class What : u32 { compute, fill, mirror } what;
  Scheme scheme;
  GridMemory<T> memory;
  GridStage stage;
  u64 begin, end;  ///< tiles
  u32 marks;

  template <class Team>
  MESHPOST_FN void operator()(Team const& team, u64 number, u64 teams) const {
    GridTiles<T, Scheme, Team> const tiles(team, memory, scheme, memory.marks[number % marks]);
    if (what == What::compute) tiles.compute({begin + number, end, teams}, stage);
    else if (what == What::fill) tiles.fill({begin + number, end, teams}, stage.next);
    else
      tiles.mirror_late({static_cast<u32>(number) * team.threads() + team.thread(),
                         static_cast<u32>(teams) * team.threads()},
                        stage.next);
  }
};

/// From the first step to the end.
struct GridSteps {
  u64 first = 0, end = 0;
};

/// The numbers of a device that the host needs for plain kernels.
struct GridCounts {
  u64 inner = 0, tiles = 0, late = 0;

  explicit GridCounts(std::vector<u64> const& table)
      : inner(table[GridTable::inner]),
        tiles(table[GridTable::tiles]),
        late(table[GridTable::late_count]) {}
};

/// The streams of a grid.
template <class T>
class GridStreams {
 public:
  /// Collective.
  GridStreams(World& world, GridLayout const& layout) : world_(&world), layout_(&layout) {
    std::vector<std::reference_wrapper<StreamEndpoint const>> all;
    grid_together(world, "Grid::run: make a stream of each device", [&] {
      for (u32 d = 0; d < world.devices().size(); ++d)
        all.emplace_back(streams_.emplace_back(world, d, layout.options().name));
    });
    halo_ = StreamExchange<T>(world, layout.plan(), all, layout.options().name);
    inner_.resize(streams_.size());
  }
  void free() { free_exchange(*world_, halo_); }

  /// Returns, or throws, when the streams of all processes are done. If it throws, it does in all,
  /// and this can't be used any more. Collective.
  template <class Scheme, bool nvcc>
  void run(Scheme const& scheme, GridWindows<T> const& grid, std::vector<GridCounts> const& counts,
           GridSteps const& steps, GridRun const& options) {
    grid_together(*world_, "Grid::run", [&] {
      auto const failure = std::make_shared<GridFailure>();
      // Nobody may use the fields before all streams are done, whatever has failed.
      auto const keep = [&](auto&& work) {
        try {
          work();
        } catch (...) {
          failure->keep(std::current_exception());
        }
      };
      keep([&] { put_all<Scheme, nvcc>(scheme, grid, counts, steps, options, failure); });
      for (auto& stream : streams_) keep([&] { stream.synchronize(); });
      for (auto const& stream : inner_)
        if (stream) keep([&] { stream->synchronize(); });
      failure->rethrow();
      std::vector<std::vector<GridMark>> marks;
      for (u32 d = 0; options.check_every != 0 && d < streams_.size(); ++d)
        marks.push_back(grid.marks.read(rank_of(d)));
      layout_->check_marks(layout_->plan().first_part(), marks, options.check_every);
    });
  }

 private:
  RankId rank_of(u32 device) const {
    return {(layout_->plan().first_part() + device) * world_->ranks_per_device()};
  }

  template <class Scheme, bool nvcc>
  void put_all(Scheme const& scheme, GridWindows<T> const& grid,
               std::vector<GridCounts> const& counts, GridSteps const& steps,
               GridRun const& options, std::shared_ptr<GridFailure> const& failure) {
    using Work = GridWork<T, Scheme>;
    for (GridTime at{steps.first, 0}; at.step <= steps.end; at = next_of<Scheme>(at)) {
      check_field(read_by(scheme, at), grid.fields);  // before anything is queued
      if (at.step == steps.end) break;
    }
    std::vector<GridMemory<T>> memory;
    for (u32 d = 0; d < streams_.size(); ++d) {
      memory.push_back({grid.values.part(rank_of(d)).data(), grid.table.part(rank_of(d)).data(),
                        grid.marks.part(rank_of(d)).data(), grid.pitch, grid.fields,
                        grid.components});
      streams_[d].stream().fill(memory[d].marks, 0,
                                Bytes{world_->ranks_per_device() * sizeof(GridMark)});
    }
    auto const put_on = [&](Stream& stream, u32 d, typename Work::What what, u64 begin, u64 end,
                            GridStage const& stage) {
      u32 const threads = options.launch.threads.x == 0 ? 256 : options.launch.threads.x;
      u64 const items = what == Work::What::mirror ? (counts[d].late + 255) / 256 : end - begin;
      enqueue_teams<Work, nvcc>(
          *world_->devices()[d], stream, {items, threads},
          Work{what, scheme, memory[d], stage, begin, end, world_->ranks_per_device()}, failure);
    };
    auto const put = [&](u32 d, typename Work::What what, u64 begin, u64 end,
                         GridStage const& stage) {
      put_on(streams_[d].stream(), d, what, begin, end, stage);
    };
    auto const inner = inner_streams(grid.pitch);
    auto const of_field = [](u32 field) { return GridStage{.next = field}; };
    for (u32 d = 0; d < streams_.size(); ++d)
      put(d, Work::What::fill, 0, counts[d].tiles, of_field(read_by(scheme, {steps.first, 0})));
    std::vector<std::shared_ptr<Event>> outer_done(streams_.size());
    for (u32 d = 0; d < streams_.size(); ++d)
      if (inner[d]) outer_done[d] = streams_[d].stream().record();
    std::deque<std::shared_ptr<Event>> behind;
    u64 stages = 0;
    for (GridTime at{steps.first, 0}; at.step < steps.end; at = next_of<Scheme>(at)) {
      GridStage const stage = stage_of(scheme, at, steps.end, options.check_every);
      auto const read = [&](u32 d) {
        return std::span<T>(memory[d].values + stage.field * grid.pitch, grid.pitch);
      };
      // All begin before any waits: streams of one GPU may share a queue of its hardware.
      for (u32 d = 0; d < streams_.size(); ++d) {
        halo_.start(d, read(d));
        if (inner[d]) inner[d]->wait(outer_done[d]);
        put_on(inner[d] ? *inner[d] : streams_[d].stream(), d, Work::What::compute, 0,
               counts[d].inner, stage);
      }
      for (u32 d = 0; d < streams_.size(); ++d) {
        halo_.finish(d, read(d));
        if constexpr (mirrors<Scheme, T>) put(d, Work::What::mirror, 0, 0, of_field(stage.field));
        put(d, Work::What::compute, counts[d].inner, counts[d].tiles, stage);
        if (!inner[d]) continue;
        outer_done[d] = streams_[d].stream().record();
        streams_[d].stream().wait(inner[d]->record());
      }
      // Not all stages at once: each waits in memory of the host until the stream gets there.
      if (++stages % stages_at_once != 0 || streams_.empty()) continue;
      behind.push_back(streams_.back().stream().record());
      if (behind.size() > 2) behind.front()->wait(), behind.pop_front();
    }
  }
  // For each device: the stream of its inner tiles; null if they share that of the others. `pitch`:
  // elements of a device's field.
  std::vector<Stream*> inner_streams(u64 pitch) {
    std::vector<Stream*> all;
    for (u32 d = 0; d < streams_.size(); ++d) {
      bool const apart = pitch >= least_apart && streams_[d].native();
      if (apart && !inner_[d]) inner_[d] = world_->devices()[d]->make_stream();
      all.push_back(apart ? inner_[d].get() : nullptr);
    }
    return all;
  }
  static void check_field(u32 field, u32 fields) {
    if (field < fields) return;
    throw Error(Kind::bad_argument, "Grid::run",
                "reads() of the scheme gave field " + std::to_string(field) + " of " +
                    std::to_string(fields),
                "give one of the grid's, or more GridOptions::fields");
  }

  static constexpr u64 stages_at_once = 256;
  static constexpr u64 least_apart = u64{1} << 22;  // some 30 us of a GPU

  World* world_;
  GridLayout const* layout_;
  std::deque<StreamEndpoint> streams_{};          // which stay where they are
  std::vector<std::unique_ptr<Stream>> inner_{};  // by device; null until one is needed
  StreamExchange<T> halo_{};
};

}  // namespace meshpost::detail
