#pragma once
#include <span>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// The steps of a pipeline and their order, as a value: tested and timed without a device.

namespace meshpost {

/// The stages that a chunk passes, as in COACCEL. LOAD^i brings it to level i from level i - 1,
/// SAVE^i to level i from level i + 1. COMP^i computes on it at level i. SYNC^i waits for the stage
/// before it.
enum class Stage : u8 { load, sync, comp, save };
std::string_view to_string(Stage stage);

/// The properties of a schedule. Level 0 is usually a host's memory, and the last one a device's,
/// but any others are allowed. The data begin at level 0, in reverse at the last.
struct ScheduleShape {
  u32 levels = 2;
  u64 chunks = 0;
  u32 depth = 2;               ///< chunks that fit into each buffer; 1 is COACCEL's
  std::vector<u32> compute{};  ///< levels at which chunks are computed on, on their way from home
  bool reverse = false;        ///< start at the last level: LOAD and SAVE swap
  bool back = true;  ///< chunks return to where they started; else they stay at the far end
};

/// One leg of a chunk's way: from buffer `leg` to buffer `leg + 1`.
struct Leg {
  Stage stage = Stage::load;  ///< load, save or comp
  u32 level = 0;              ///< the level where it arrives, or is computed on
  bool operator==(Leg const&) const = default;
};
/// "LOAD^1"
std::string to_string(Leg const& leg);

/// A resting place of chunks between two legs: `depth` slots, chunk c in slot c mod depth. The
/// first and the last are the user's memory, which has room for all chunks.
struct ChunkBuffer {
  u32 level = 0;
  bool users = false;
  bool operator==(ChunkBuffer const&) const = default;
};

/// One stage of one chunk, and the steps that must be over before it starts.
struct Step {
  Stage stage = Stage::load;
  u32 leg = 0;  ///< a SYNC has the leg that it waits for
  u64 chunk = 0;
  std::vector<u64> after{};  ///< numbers of steps: data there, buffer free, engine free
};

/// All steps of all chunks. Every step has a higher number than those it waits for.
///
/// A leg of chunk c waits for three steps. The first is the SYNC of the leg before it: the data are
/// there. The second is the SYNC of the leg after it of chunk c - depth: nobody reads the buffer
/// any more. The third is the same leg of chunk c - 1: the engine takes chunks in order. A SYNC
/// waits for its leg.
struct Schedule {
  ScheduleShape shape;
  std::vector<Leg> legs;
  std::vector<ChunkBuffer> buffers;  ///< legs + 1

  /// \throws Error(bad_argument) if there are more than 2^64
  u64 size() const;
  /// \throws Error(bad_argument) if there is no such step
  Step step(u64 number) const;
  u64 number(u64 chunk, u32 leg, bool sync) const {
    return (chunk * legs.size() + leg) * 2 + (sync ? 1 : 0);
  }
  u64 slot(u64 chunk) const { return chunk % shape.depth; }
};

/// \throws Error(bad_argument) for no levels or more than 4096, no depth or more than 65536, a
/// level in `compute` that does not exist or is named twice, more than 2^64 steps, and if nothing
/// would move
Schedule make_schedule(ScheduleShape const& shape);

/// The time of a leg for each chunk, and its engine: legs with the same engine take turns. Engines
/// are numbered from 0, and below 12288.
struct LegTime {
  double seconds = 0;
  u32 engine = 0;
};
struct StepTime {
  double begin = 0, end = 0;  ///< seconds
};
struct Prediction {
  double seconds = 0;
  std::vector<StepTime> steps;  ///< by number
};
/// The time of each step, if each engine takes the step that can start first. Of several it takes
/// the one that is furthest on its way. Assume an engine for each leg. With depth 2 or more, the
/// total time for each chunk tends to that of the slowest leg. With depth 1 it tends to that of the
/// slowest two neighbouring legs.
/// \throws Error(bad_argument) if there isn't one time for each leg, one is negative, or its engine
/// does not exist; Error(out_of_memory) if the steps don't fit into memory
Prediction predict(Schedule const& schedule, std::span<LegTime const> legs);

}  // namespace meshpost
