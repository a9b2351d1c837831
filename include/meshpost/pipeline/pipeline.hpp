#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "meshpost/copy/copy.hpp"
#include "meshpost/copy/job_memory.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/pipeline/schedule.hpp"

// Chunks of a large array through a hierarchy of memories, computed on somewhere, and back.

namespace meshpost {

/// A memory that chunks go through. The first and, if chunks stay there, the last are where your
/// data are; buffers are made at the others.
struct Level {
  std::shared_ptr<Device> device;  ///< the one that allocates it; another process's: null
  MemoryKind memory = MemoryKind::device;
  u32 process = 0;  ///< of the job that has it
};

/// One chunk on one leg of its way.
struct ChunkMove {
  Stage stage = Stage::load;
  u32 level = 0;  ///< where it arrives
  u64 chunk = 0;
  u64 first = 0, count = 0;  ///< its items
  /// The chunk's buffers, null: your memory. Where one is another process's, an address that stands
  /// for it: segments count from there, but nobody can read or write there.
  void* target = nullptr;
  void const* source = nullptr;
  Bytes size{};  ///< of `count` items

  /// All of it in one piece; where an end is your memory, at that address.
  Segment whole(void* your_target = nullptr, void const* your_source = nullptr) const {
    return {target ? target : your_target, source ? source : your_source, size};
  }
};

/// One chunk to compute on.
struct ChunkWork {
  u32 level = 0;
  u64 chunk = 0;
  u64 first = 0, count = 0;  ///< its items
  void* in = nullptr;        ///< may be changed; null: your memory
  void* out = nullptr;       ///< another buffer; null: your memory
  Bytes size{};
};

/// What is computed at a level. Give `on_stream`, or `start` with or without `sync`.
struct Compute {
  u32 level = 0;
  /// Puts the work on a stream of the level's device, on which the data will be there: always the
  /// same stream, in the order of the chunks, on a thread of the library. What it puts there must
  /// not throw.
  std::function<void(ChunkWork const&, Stream&)> on_stream{};
  /// Called when the data are there, on a thread of the library, chunk after chunk. It may start
  /// work whose end `sync` waits for.
  std::function<void(ChunkWork const&)> start{}, sync{};
};

struct PipelineOptions {
  std::vector<Level> levels{};
  u64 items = 0;         ///< that pass in all
  u64 chunk = 0;         ///< items at a time
  Bytes item{};          ///< bytes of one
  u32 depth = 2;         ///< chunks that each buffer has room for
  bool reverse = false;  ///< your data are at the last level, not at the first
  bool back = true;      ///< chunks return; else they stay at the far end
  /// The pieces of a chunk for one leg. Called once for each leg of each chunk, perhaps ahead of
  /// time, on threads of the library, one call at a time. Pieces of a buffer must lie within `size`
  /// bytes of it; no two may be written to the same bytes.
  std::function<std::vector<Segment>(ChunkMove const&)> segments{};
  /// Whether `segments` is asked also for legs between two buffers; else they are moved whole.
  bool segments_between_buffers = false;
  /// In all processes the same levels; the functions are needed where the level is.
  std::vector<Compute> compute{};
  /// Where levels are in several processes: all of them make the same pipeline and run it together.
  /// Your memory is in the process of the first level, or the last in reverse, and its functions
  /// are called there. Must outlive the pipeline.
  JobMemory* job = nullptr;
};

struct PipelineRun {
  bool timed = false;          ///< note when each leg began and ended; costs GPUs some us each
  bool one_at_a_time = false;  ///< nothing overlaps: what a pipeline is to be compared with
};

struct PipelineResult {
  double seconds = 0;
  u64 bytes = 0;                 ///< of all legs of this process but computing
  std::vector<double> busy{};    ///< seconds of each leg of this process, if timed
  std::vector<StepTime> legs{};  ///< of leg l of chunk c at c * legs + l, if timed; since the start
};

/// A pipeline with its buffers and streams, to be run any number of times. One thread at a time.
///
/// Over several processes the constructor and run() are collective. A leg between two processes is
/// a copy between them; each chunk's end is told to the processes that wait for it, with its stage,
/// level, number and direction. What fails in one process ends the run in all, with one error.
class Pipeline {
 public:
  /// Makes the buffers of this process. \throws Error(bad_argument) for a level without a device,
  /// no items in a chunk, missing functions, and what make_schedule() refuses; Error(out_of_memory)
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// Passes all chunks through and returns when the last is through. If anything fails, it starts
  /// nothing more, waits for what runs, and throws; the pipeline can be run again.
  /// \throws Error naming stage, level and chunk: of a function's own kind, or kernel_failed for
  /// exceptions that are no Error; bad_argument for segments outside their buffer; device_failed
  PipelineResult run(PipelineRun const& how = {});

  Schedule const& schedule() const;
  /// Memory of all its buffers.
  Bytes buffer_bytes() const;
  /// The first slot of a buffer of the schedule, null where it is yours. \throws
  /// Error(bad_argument)
  void* buffer(u32 number) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A timed run as a timeline in the trace event format: a row a leg, in the order of the chunks'
/// way. tools/timeline.py draws it. \throws Error(bad_argument) if the run was not timed
std::string to_perfetto(Schedule const& schedule, PipelineResult const& result,
                        std::string const& name);

}  // namespace meshpost
