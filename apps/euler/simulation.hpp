#pragma once
#include <meshpost/meshpost.hpp>

#include <functional>
#include <meshpost/array/grid.hpp>
#include <optional>

#include "common/gather.hpp"
#include "kernel.hpp"
#include "observe.hpp"
#include "options.hpp"

namespace euler {

using namespace meshpost;

/// A simulation over all devices of a World. Collective, but for look() and read().
class Simulation {
 public:
  Simulation(World& world, Options const& options, State const& start)
      : world_(world),
        options_(options),
        state_(start),
        grid_(world, grid_options(world, options, start)) {
    state_.values.clear();  // what is there is in the grid
    if (world.processes() > 1) job_.emplace();
    fill(start);
  }

  Grid<double> const& grid() const { return grid_; }
  State const& state() const { return state_; }  ///< without values

  void fill(State const& start) {
    fill(grid_, start);
    state_.step = start.step, state_.time = start.time;
  }

  /// `measures`: for how long each device computes, which takes time itself.
  GridResult advance(u64 steps, bool measures = false) {
    auto run = run_of(options_, state_.step);
    run.measures = measures;
    auto const result = grid_.run(Scheme{state_.problem.equations(state_.dt)}, steps, run);
    state_.step += steps;
    state_.time += static_cast<double>(steps) * state_.dt;
    return result;
  }

  /// Looks at all parts; a part is in memory at a time.
  Observer look() const {
    Observer observer(state_.problem);
    for (u32 part = 0; part < grid_.boxes().parts(); ++part)
      observer.add(grid_.box(part), grid_.read(0, part));
    return observer;
  }

  State read() const {
    State state = state_;
    auto const& n = state.problem.cells;
    state.values.resize(n.x * n.y * n.z * components);
    for (u32 part = 0; part < grid_.boxes().parts(); ++part) {
      auto const box = grid_.box(part);
      auto const values = grid_.read(0, part);
      u64 i = 0;
      for (u32 c = 0; c < components; ++c)
        for (i64 z = box.begin.z; z < box.end.z; ++z)
          for (i64 y = box.begin.y; y < box.end.y; ++y) {
            if (box.empty()) continue;
            std::copy_n(values.begin() + static_cast<i64>(i), box.extent(0),
                        state.values.begin() + static_cast<i64>(state.place(box.begin.x, y, z, c)));
            i += box.extent(0);
          }
    }
    return state;
  }

  /// Process 0 does the work. If it throws, this throws in all processes, so that none of them
  /// waits for another.
  void in_first(std::function<void()> const& work) {
    std::string failed;
    std::exception_ptr error;
    if (world_.process() == 0) {
      try {
        work();
      } catch (std::exception const& thrown) {
        failed = thrown.what();
        error = std::current_exception();
      }
    }
    if (job_) failed = gather(*job_, failed).front();
    if (error) std::rethrow_exception(error);
    if (!failed.empty()) throw Error(Kind::kernel_failed, "process 0", failed, "see its message");
  }

 private:
  static void fill(Grid<double>& grid, State const& state) {
    if (state.values.empty()) fill_from(grid, InitialState(state.problem));
    else fill_from(grid, state);
  }
  static void fill_from(Grid<double>& grid, auto const& values) {
    grid.fill(0, [&](Cell const& cell, u32 component) {
      return values.at(cell.x, cell.y, cell.z, component);
    });
  }
  static GridRun run_of(Options const& options, u64 first_step) {
    GridRun run;
    run.execution = options.execution == "one-kernel" ? GridExecution::one_kernel
                                                      : GridExecution::kernel_a_step;
    run.first_step = first_step;
    run.launch.threads = {options.threads, 1, 1};
    run.check_every = options.check_every;
    return run;
  }
  static GridOptions grid_options(World& world, Options const& options, State const& start) {
    GridOptions grid;
    grid.extents = start.problem.cells;
    grid.halo = halo;
    grid.boundary = {Boundary::periodic, Boundary::periodic, Boundary::reflecting};
    grid.fields = Scheme::fields;
    grid.components = components;
    grid.name = "euler";
    if (options.shares == "measured")
      grid.shares = measured_shares<double>(world, grid, Scheme{start.problem.equations(start.dt)},
                                            [&](auto& trial) { fill(trial, start); });
    else if (!options.shares.empty()) grid.shares = read_shares(options.shares);
    return grid;
  }

  World& world_;
  Options options_;
  State state_;
  Grid<double> grid_;
  std::optional<JobMemory> job_;
};

}  // namespace euler
