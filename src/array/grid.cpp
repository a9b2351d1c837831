#include "meshpost/array/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "array/box_text.hpp"
#include "meshpost/base/error.hpp"
#include "rma/world_state.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 most_fields = 64;
// Elements of T from a field to the next: so that fields begin at multiples of a cache line.
constexpr u64 field_step = 64;

Sides halo_of(GridOptions const& options) {
  Sides sides = options.sides.value_or(Sides::all(options.halo));
  u64 const extents[] = {options.extents.x, options.extents.y, options.extents.z};
  for (u32 d = 0; d < 3; ++d)
    if (extents[d] == 1) sides.low[d] = sides.high[d] = 0;
  return sides;
}

BoxHalo box_halo(GridOptions const& options) {
  return {.widths = halo_of(options),
          .corners = options.corners,
          .own = false,  // ranks fill these cells
          .boundary = options.boundary,
          .components = options.components,
          .components_apart = true};
}

void refuse_grid(std::string cause, std::string remedy) {
  throw Error(Kind::bad_argument, "Grid", std::move(cause), std::move(remedy));
}

void check_options(World const& world, GridOptions const& options) {
  if (options.fields == 0 || options.fields > most_fields)
    refuse_grid(fmt::format("{} fields", options.fields),
                fmt::format("give 1 to {} of them", most_fields));
  if (!options.shares.empty() && options.shares.size() != world.device_count())
    refuse_grid(
        fmt::format("{} shares for {} devices", options.shares.size(), world.device_count()),
        "give one for each device of the World, or none");
}

Boxes cut_for(World const& world, GridOptions const& options) {
  check_options(world, options);
  if (options.shares.empty()) return Boxes::cut(options.extents, world.device_count(), options.cut);
  return Boxes::cut(options.extents, options.shares, options.cut);
}

PartsHere parts_of(World const& world) {
  return {world.first_rank() / world.ranks_per_device(), static_cast<u32>(world.devices().size())};
}

// The properties that all processes must give alike. The first difference is named, so the extents
// come first.
using Properties = std::array<std::string, 6>;

Properties properties_of(GridLayout const& layout) {
  auto const& [widths, corners, own, boundary, components, apart] = layout.halo();
  auto const& [low, high] = widths;
  constexpr char const* names[] = {"none", "periodic", "reflecting"};
  auto const name = [&](u32 d) { return names[static_cast<u32>(boundary[d])]; };
  auto const& boxes = layout.boxes();
  return {text_of(boxes.extents()) + " cells",
          fmt::format("{} fields", layout.options().fields),
          fmt::format("{} components", components),
          fmt::format("a halo of {}+{}, {}+{}, {}+{} cells{}", low[0], high[0], low[1], high[1],
                      low[2], high[2], corners ? " with corners" : ""),
          fmt::format("the boundaries {}, {}, {}", name(0), name(1), name(2)),
          fmt::format("{}, cut {:x}", boxes.describe(), boxes.fingerprint())};
}

// `all`: properties, by process.
void check_equal(std::vector<std::string> const& all, std::string const& operation) {
  for (u32 process = 1; process < all.size(); ++process) {
    wire::Unpacker first(all[0]), other(all[process]);
    for (u32 i = 0; i < Properties{}.size(); ++i) {
      auto const a = first.text(), b = other.text();
      if (a != b)
        throw Error(Kind::bad_argument, operation,
                    fmt::format("process {} has {}, and process 0 has {}", process, b, a),
                    "give all processes the same GridOptions");
    }
  }
}

}  // namespace

void grid_together(World const& world, std::string const& operation,
                   std::function<void()> const& work) {
  world_of(world.communicator().world, operation)->group().together(operation, work);
}

GridLayout GridLayout::make(World const& world, GridOptions const& options) {
  auto const operation = fmt::format("make grid '{}'", options.name);
  auto const state = world_of(world.communicator().world, operation);
  std::optional<GridLayout> layout;
  auto const all = state->group().gather(operation, [&] {
    layout.emplace(world, options);
    wire::Packer packer;
    for (auto const& property : properties_of(*layout)) packer.text(property);
    return packer.take();
  });
  check_equal(all, operation);
  return std::move(*layout);
}

GridLayout::GridLayout(World const& world, GridOptions options)
    : options_(std::move(options)),
      boxes_(cut_for(world, options_)),
      halo_(box_halo(options_)),
      plan_(Plan::from_boxes(boxes_, halo_, parts_of(world))) {
  for (u32 part = 0; part < boxes_.parts(); ++part)
    pitch_ = std::max(pitch_, frame(part).cells() * options_.components);
  pitch_ = (pitch_ + field_step - 1) / field_step * field_step;
}

Box GridLayout::frame(u32 part) const { return boxes_.box(part).grown(halo_.widths); }

bool GridLayout::is_fixed(Cell cell) const {
  Box const grid = boxes_.grid();
  for (u32 d = 0; d < 3; ++d)
    if (options_.boundary[d] == Boundary::none &&
        (cell[d] < grid.begin[d] || cell[d] >= grid.end[d]))
      return true;
  return false;
}

void refuse_field(u32 field, u32 count) {
  throw Error(Kind::bad_argument, "a scheme of a Grid",
              fmt::format("field {} of {} was named", field, count),
              "name one of the grid's, or give more GridOptions::fields");
}

void GridLayout::check_alive(WindowInfo const& values, char const* operation) const {
  if (values.number == 0)
    throw Error(Kind::misuse, operation, fmt::format("grid '{}' was freed", options_.name),
                "use it before Grid::free(), or make another one");
  world_of(values.world, operation);
}

void GridLayout::check_field(u32 field, char const* operation) const {
  if (field < options_.fields) return;
  throw Error(
      Kind::bad_argument, operation,
      fmt::format("field {} of grid '{}', which has {}", field, options_.name, options_.fields),
      fmt::format("give 0 to {}, or more GridOptions::fields", options_.fields - 1));
}

void GridLayout::check_write(u32 field, u32 part, u64 values) const {
  check_field(field, "Grid::write");
  if (part - plan_.first_part() >= plan_.part_count())
    throw Error(Kind::bad_argument, "Grid::write",
                fmt::format("part {} of grid '{}'; this process has {}", part, options_.name,
                            plan_.part_count() == 0
                                ? std::string("none")
                                : fmt::format("parts {} to {}", plan_.first_part(),
                                              plan_.first_part() + plan_.part_count() - 1)),
                "write parts of this process: Grid::first_part() and the next part_count()");
  u64 const cells = boxes_.box(part).cells() * options_.components;
  if (values == cells) return;
  throw Error(Kind::bad_argument, "Grid::write",
              fmt::format("{} values for part {} of grid '{}', which has {}", values, part,
                          options_.name, cells),
              "give one for each cell of Grid::box(part) and each component");
}

void GridLayout::check_marks(u32 first_part, std::vector<std::vector<GridMark>> const& marks,
                             u64 check_every) const {
  GridMark const* first = nullptr;
  u32 at = 0;
  for (u32 i = 0; i < marks.size(); ++i)
    for (auto const& mark : marks[i])
      if (mark.found != 0 && (!first || mark.step < first->step))
        first = &mark, at = first_part + i;
  if (!first) return;
  Box const box = frame(at);
  Cell const cell = box.cell_at(first->place % box.cells());
  throw Error(
      Kind::kernel_failed, "Grid::run",
      fmt::format("behind step {} of grid '{}', cell ({}, {}, {}) has a value that is infinite or "
                  "no number{}",
                  first->step, options_.name, cell.x, cell.y, cell.z,
                  options_.components == 1
                      ? std::string()
                      : fmt::format(" in component {}", first->place / box.cells())),
      fmt::format("check the initial values and the length of a step; that every field has been "
                  "filled, and that the scheme reads no cell beyond GridOptions::halo (corners "
                  "only with GridOptions::corners), or of another field than its reads(); it "
                  "looks behind every {} steps (GridRun::check_every), so it may have come in one "
                  "of the steps before, and in other cells, too",
                  check_every));
}

}  // namespace meshpost::detail
