// Checks of a copy's arguments before it begins.
#include <fmt/format.h>

#include "copy/devices.hpp"
#include "copy/request.hpp"

namespace meshpost::copying {
namespace {

std::string name_of(PitchedCopy const& rows) {
  if (rows.rows == 1 && rows.slices == 1) return fmt::format("copy of {} bytes", rows.width);
  return fmt::format("copy of {} x {} rows of {} bytes", rows.slices, rows.rows, rows.width);
}

struct Side {
  char const* begin;
  u64 row, slice, rows, slices, width;

  u64 extent() const { return (slices - 1) * slice + (rows - 1) * row + width; }
  u64 size() const { return rows * slices; }
  char const* at(u64 i) const { return begin + i / rows * slice + i % rows * row; }
};

// Both lists of rows ascend. So one walk along both finds two rows that overlap.
bool rows_meet(Side const& one, Side const& other) {
  if (one.begin + one.extent() <= other.begin || other.begin + other.extent() <= one.begin)
    return false;
  for (u64 i = 0, j = 0; i < one.size() && j < other.size();) {
    char const *const a = one.at(i), *const b = other.at(j);
    if (a + one.width <= b) ++i;
    else if (b + other.width <= a) ++j;
    else return true;
  }
  return false;
}

constexpr u64 most = u64{1} << 62;  // bytes; sums of these don't wrap

void check_pitches(Side const& side, PitchedCopy const& rows, char const* role) {
  auto const refuse = [&](std::string cause, char const* remedy) {
    throw Error(Kind::bad_argument, name_of(rows), std::move(cause), remedy);
  };
  if (side.rows > 1 && side.row < side.width)
    refuse(fmt::format("the {}'s row pitch of {} bytes is less than a row of {}", role, side.row,
                       side.width),
           "give the distance from one row's beginning to the next");
  auto const too_large = [&](u64 count, u64 pitch) {
    return count > 1 && pitch > most / (count - 1);
  };
  if (too_large(side.rows, side.row) || too_large(side.slices, side.slice) || side.width > most)
    refuse(fmt::format("the {} would be larger than any memory", role), "check counts and pitches");
  u64 const slice = (side.rows - 1) * side.row + side.width;
  if (side.slices > 1 && side.slice < slice)
    refuse(fmt::format("the {}'s slice pitch of {} bytes is less than a slice of {}", role,
                       side.slice, slice),
           "give the distance from one slice's beginning to the next");
}

}  // namespace

PitchedCopy merge_rows(PitchedCopy rows) {
  if (rows.rows == 1) {  // slices of one row are rows
    rows.rows = rows.slices, rows.slices = 1;
    rows.target_row = rows.target_slice, rows.source_row = rows.source_slice;
  }
  if (rows.rows > 1 && rows.target_row == rows.width && rows.source_row == rows.width) {
    rows.width *= rows.rows, rows.rows = 1;
    return rows.slices > 1 ? merge_rows(rows) : rows;
  }
  return rows;
}

namespace {

Side target_of(PitchedCopy const& asked) {
  return {static_cast<char*>(asked.target),
          asked.target_row,
          asked.target_slice,
          asked.rows,
          asked.slices,
          asked.width};
}
Side source_of(PitchedCopy const& asked) {
  return {static_cast<char const*>(asked.source),
          asked.source_row,
          asked.source_slice,
          asked.rows,
          asked.slices,
          asked.width};
}

}  // namespace

void check_pitches(PitchedCopy const& rows) {
  check_pitches(target_of(rows), rows, "target");
  check_pitches(source_of(rows), rows, "source");
}

u64 extent_of(Pitch pitch, BlockShape const& shape) {
  return Side{nullptr, pitch.row, pitch.slice, shape.rows, shape.slices, shape.width}.extent();
}

Request check_request(PitchedCopy const& asked) {
  Side const target = target_of(asked), source = source_of(asked);
  bool const plain = asked.rows == 1 && asked.slices == 1;
  if (!plain) check_pitches(asked);
  // The text is made only after a failure: it takes longer than a small copy.
  auto const found = [&](void const* pointer, u64 size, char const* role) {
    try {
      return locate(pointer, size, "copy", role);
    } catch (Error const& error) {
      throw Error(error.kind(), name_of(asked), error.cause(), error.remedy());
    }
  };
  Request request{plain ? asked : merge_rows(asked), found(asked.target, target.extent(), "target"),
                  found(asked.source, source.extent(), "source")};
  if (rows_meet(target, source))
    throw Error(Kind::bad_argument, name_of(asked),
                fmt::format("source {} and target {} overlap", asked.source, asked.target),
                "copy through a third place, or in pieces that don't overlap");
  bool const devices = !request.to.on_host && !request.from.on_host;
  if (devices && request.to.device != request.from.device)
    join(*request.from.device, *request.to.device);
  return request;
}

}  // namespace meshpost::copying
