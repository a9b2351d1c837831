#pragma once
#include <span>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// What a pipeline does and in which order, as a value: tested and timed without a device.

namespace meshpost {

/// The stages that a chunk passes, as in COACCEL: LOAD^i brings it to level i from level i - 1,
/// SAVE^i to level i from level i + 1, COMP^i computes on it at level i, SYNC^i waits for what came
/// before.
enum class Stage : u8 { load, sync, comp, save };
std::string_view to_string(Stage stage);

/// What a schedule is made for. Level 0 is a host's memory and the last one a device's, or as the
/// pipeline likes; the data begin at level 0 or, in reverse, at the last.
struct ScheduleShape {
  u32 levels = 2;
  u64 chunks = 0;
  u32 depth = 2;               ///< chunks that each buffer has room for; 1 is COACCEL's
  std::vector<u32> compute{};  ///< levels at which chunks are computed on, on their way from home
  bool reverse = false;        ///< start at the last level: LOAD and SAVE swap
  bool back = true;  ///< chunks return to where they started; else they stay at the far end
};

/// One leg of a chunk's way: from buffer `leg` to buffer `leg + 1`.
struct Leg {
  Stage stage = Stage::load;  ///< load, save or comp
  u32 level = 0;              ///< where it arrives, or is computed
  bool operator==(Leg const&) const = default;
};
/// "LOAD^1"
std::string to_string(Leg const& leg);

/// Where chunks rest between two legs: `depth` slots, chunk c in slot c mod depth. The first and
/// the last are the user's memory, which has room for all chunks.
struct ChunkBuffer {
  u32 level = 0;
  bool users = false;
  bool operator==(ChunkBuffer const&) const = default;
};

/// One stage of one chunk, and the steps that must be over before it starts.
struct Step {
  Stage stage = Stage::load;
  u32 leg = 0;  ///< a SYNC's leg is the one that it waits for
  u64 chunk = 0;
  std::vector<u64> after{};  ///< numbers of steps: data there, buffer free, engine free
};

/// All steps of all chunks, numbered so that every step comes after those it waits for.
///
/// A leg of chunk c waits for the SYNC of the leg before it (data there), for the SYNC of the leg
/// after it of chunk c - depth (nobody reads the buffer any more) and for itself of chunk c - 1
/// (the engine takes chunks in order). A SYNC waits for its leg.
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
/// level to compute at that there is not or that is named twice, more than 2^64 steps, and if
/// nothing would move
Schedule make_schedule(ScheduleShape const& shape);

/// How long a leg takes for each chunk, and on what: legs with the same engine take turns. Engines
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
/// When each step runs if each engine takes the step that can start first, and of several the one
/// that is furthest on its way. With depth 2 or more and an engine for each leg the total tends to
/// the slowest leg's time for each chunk, with depth 1 to the slowest two neighbouring legs'.
/// \throws Error(bad_argument) if there isn't one time for each leg, one is negative, or its engine
/// is none; Error(out_of_memory) for more steps than there is memory for
Prediction predict(Schedule const& schedule, std::span<LegTime const> legs);

}  // namespace meshpost
