#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshpost/array/distribution.hpp"
#include "meshpost/copy/job_memory.hpp"

namespace meshpost {

/// Elements that go from one part to another.
struct PlanEntry {
  u32 part;  ///< the other one
  u64 count;
  u64 offset;  ///< number of the first among all elements that the part sends, or receives
  u64 there;   ///< its number at the other part, among those that it receives, or sends

  bool operator==(PlanEntry const&) const = default;
};

/// Places in a part's memory, one for each element that it sends or receives: consecutive ones from
/// `first` on, or those of `list`.
struct Places {
  u64 count = 0;
  u64 first = 0;            ///< if there is no list
  std::vector<u64> list{};  ///< else as many as `count`

  bool consecutive() const { return list.empty(); }
  /// The same of those elements alone, also if there is a list.
  bool consecutive(u64 begin, u64 end) const {
    if (!list.empty())
      for (u64 number = begin; number < end; ++number)
        if (list[number] != list[begin] + (number - begin)) return false;
    return true;
  }
  u64 operator[](u64 number) const { return list.empty() ? first + number : list[number]; }
  bool operator==(Places const&) const = default;
};

/// All that one part sends and receives. Parts in entries ascend. A part may be its own peer: at
/// the ends of a periodic or reflecting grid.
///
/// By from_indices() and from_pattern(), its memory has its own elements first, at their places in
/// the distribution. Behind them is its halo: the elements of other parts that it needs, by owner,
/// and by their places there. By from_boxes(), its memory is a frame (BoxHalo).
struct PartPlan {
  u32 part = 0;
  u64 elements = 0;  ///< of its memory
  u64 own = 0;       ///< elements that it owns
  /// Global indices of the elements that it receives, in their order. A reversed plan sends them.
  std::vector<u64> halo{};
  std::vector<PlanEntry> sends{}, receives{};
  Places sent{}, received{};  ///< where the elements are taken from, and where they go

  u64 size() const { return elements; }
  bool operator==(PartPlan const&) const = default;
};

/// The halos of a grid's boxes.
///
/// A part's memory is its frame: its box with the widths at every side (Box::grown), x fastest,
/// also outside of the grid. An empty box has none.
struct BoxHalo {
  Sides widths{};
  /// Also the cells that lie outside of the box in two or three dimensions.
  bool corners = false;
  /// Cells of the box itself, at the ends of a periodic or reflecting grid; false: they stay as
  /// they are.
  bool own = true;
  /// By dimension: x, y, z.
  std::array<Boundary, 3> boundary{};
  u32 components = 1;  ///< elements of a cell
  /// Component c of all cells of the frame lies before component c + 1 (a structure of arrays).
  /// Otherwise a cell's components lie side by side.
  bool components_apart = false;

  /// The place of a cell's component in a frame.
  u64 place_of(Box const& frame, Cell cell, u32 component = 0) const {
    u64 const number = frame.place_of(cell);
    return components_apart ? component * frame.cells() + number : number * components + component;
  }
};

/// The parts of this process, for a plan that each process makes alone.
struct PartsHere {
  /// Without `count`: all from `first` on. With a JobMemory `first` follows from the counts, and
  /// may be left out.
  std::optional<u32> first{}, count{};
  /// Checks that all processes of a job make the same plan. Without it, processes that differ do
  /// not find out here (make_exchange() finds it), and explain() does not know the ways between
  /// them.
  JobMemory* job = nullptr;
};

/// The elements that the parts of a distribution send each other: pieces {part, count, offset},
/// built once and used in each iteration, for arrays of any type. It knows the parts of this
/// process only. Immutable, cheap to copy.
///
/// Source: LAMA's CommunicationPlan.
class Plan {
 public:
  /// Gives each part of this process the elements that it needs from others. `needs[i]` has the
  /// global indices that the i-th of them needs, in any order, more than once, and its own as well.
  ///
  /// `job` null: all parts are this process's. In a job, give one; it may end before the plan. Then
  /// the parts of process 0 come first, then those of process 1, and so on; then the call is
  /// collective. No process learns more than what its own parts send and receive.
  /// \throws Error(bad_argument) if there is no such element, or not one list for each part; in a
  /// job, in all processes. Error(misuse, peer_lost)
  static Plan from_indices(Distribution const& distribution,
                           std::span<std::vector<u64> const> needs, JobMemory* job = nullptr);
  /// The rows of a sparse matrix that the i-th part of this process owns, as CSR.
  struct Pattern {
    std::span<u64 const> offsets;  ///< of each row, and the end
    std::span<u64 const> columns;  ///< global indices
  };
  /// For a product with a sparse matrix: a part needs the columns of its rows. `distribution` is
  /// that of the vector. \throws as from_indices(), and Error(bad_argument) for offsets that
  /// descend or leave the columns
  static Plan from_pattern(Distribution const& distribution, std::span<Pattern const> patterns,
                           JobMemory* job = nullptr);

  /// For a grid: a part needs the halo of its box. No process asks another one, so each may make
  /// the plan alone; with PartsHere::job, the call is collective.
  ///
  /// Halo cells outside of the grid, by boundary: periodic, the cell at the other end; reflecting,
  /// the mirrored one (of -1 it is cell 0, of -2 cell 1); none: nothing is received. The
  /// distribution is that of the cells; PartPlan counts elements, which are their components, and
  /// PartPlan::halo has the cell of each. A halo may be wider than the next box: then some of its
  /// cells come from the one behind.
  /// \throws Error(bad_argument) for a periodic or reflecting halo that is wider than the grid, no
  /// components, frames of 2^62 elements or more, or parts here that the boxes don't have; in a job
  /// also if processes give different boxes or halos, or not all parts. Error(misuse, peer_lost)
  static Plan from_boxes(Boxes const& boxes, BoxHalo const& halo, PartsHere const& here = {});

  Distribution const& distribution() const;
  /// The parts of this process: the first, and how many.
  u32 first_part() const;
  u32 part_count() const;
  /// \throws Error(bad_argument) if it is not this process's
  PartPlan const& of(u32 part) const;
  /// The place of an element in a part's memory, its own or in the halo; of a cell: of its first
  /// component. If a frame has a cell several times: the own one, else the one that is not mirrored
  /// or moved by the grid's size, else any.
  /// \throws Error(bad_argument) if it is neither, or the part is not this process's
  u64 place_of(u32 part, u64 index) const;
  /// The same pieces in the other direction: from halos to their owners, who combine what they get.
  /// Each element keeps its place. With RankExchange: back.start(x); back.finish(x, plus), where
  /// the owner's value is the first operand.
  Plan reverse() const;

  /// The same number in all processes, and most likely another one for another plan.
  u64 fingerprint() const;
  /// The most of any part, in all processes.
  struct Most {
    u64 size = 0;                ///< PartPlan::size(): for windows of equal parts
    u64 sent = 0, received = 0;  ///< elements
    u64 entries = 0;             ///< of `sends`, or of `receives`
  };
  Most const& most() const;

  /// For each part: its peers with elements, bytes, and the way they go: within the process, within
  /// the node, or by the network. `element`: its size.
  std::string explain(Bytes element) const;

  struct State;  // of the library

 private:
  explicit Plan(std::shared_ptr<State const> state) : state_(std::move(state)) {}
  std::shared_ptr<State const> state_;
};

}  // namespace meshpost
