#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/copy/job_memory.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/pipeline/schedule.hpp"

// Moves chunks of a large array through a hierarchy of memories to a place where they are computed
// on, and back.

namespace meshpost {

/// A memory that chunks go through. Your data are at the first level and, if chunks stay there, at
/// the last. Buffers are made at the others.
struct Level {
  std::shared_ptr<Device> device;  ///< the device that allocates it; another process's: null
  MemoryKind memory = MemoryKind::device;
  u32 process = 0;  ///< the process of the job that has it
  /// Moves a chunk's pieces from or to this level, in place of a copy, and returns when they have
  /// arrived. For ends that are no memory here, such as a connection. Your data must be here: it is
  /// the first level, or the last one of chunks that stay there. Called on the thread of the leg.
  std::function<void(std::vector<Segment> const&)> carry{};
};

/// One chunk on one leg.
struct ChunkMove {
  Stage stage = Stage::load;
  u32 level = 0;  ///< the level where it arrives
  u64 chunk = 0;
  u64 first = 0, count = 0;  ///< its items
  /// The chunk's buffers; null: your memory. If a buffer is another process's, this is an address
  /// that stands for it. Segments count from there, but nobody can read or write there.
  void* target = nullptr;
  void const* source = nullptr;
  Bytes size{};  ///< of `count` items

  /// The whole chunk as one piece. If an end is your memory, it is at that address.
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

/// The computation at a level. Give `on_stream`, or `start` with or without `sync`.
struct Compute {
  u32 level = 0;
  /// Puts the work on a stream of the level's device. In the stream's order the data arrive before
  /// it. It is always the same stream, in the order of the chunks, and the call comes from a thread
  /// of the library. Work on the stream must not throw.
  std::function<void(ChunkWork const&, Stream&)> on_stream{};
  /// Called when the data are there, on a thread of the library, chunk after chunk. It may start
  /// work; `sync` then waits for its end.
  std::function<void(ChunkWork const&)> start{}, sync{};
};

struct PipelineOptions {
  std::vector<Level> levels{};
  u64 items = 0;         ///< of the whole array
  u64 chunk = 0;         ///< items at a time
  Bytes item{};          ///< bytes of one
  u32 depth = 2;         ///< chunks that fit into each buffer
  bool reverse = false;  ///< your data are at the last level, not at the first
  bool back = true;      ///< chunks return; else they stay at the far end
  /// The pieces of a chunk for one leg. Called once for each leg of each chunk, perhaps ahead of
  /// time. The calls come from threads of the library, one at a time. Pieces of a buffer must lie
  /// within `size` bytes of it. No two pieces may be written to the same bytes.
  std::function<std::vector<Segment>(ChunkMove const&)> segments{};
  /// True: `segments` is also called for legs between two buffers. Otherwise these chunks are moved
  /// whole.
  bool segments_between_buffers = false;
  /// The levels must be the same in all processes. The functions are needed where the level is.
  std::vector<Compute> compute{};
  /// Called once when a run fails, on the thread that failed. It should end the waits of other
  /// threads in Level::carry. Must not throw.
  std::function<void(Error const&)> failed{};
  /// For levels in several processes: all of them make the same pipeline and run it together. Your
  /// memory is in the process of the first level (in reverse, of the last), and its functions are
  /// called there. Must outlive the pipeline.
  JobMemory* job = nullptr;
};

struct PipelineRun {
  bool timed = false;          ///< note when each leg began and ended; costs GPUs some us each
  bool one_at_a_time = false;  ///< nothing overlaps: the reference to compare a pipeline with
};

struct PipelineResult {
  double seconds = 0;
  u64 bytes = 0;                 ///< of all legs of this process, except computing
  std::vector<double> busy{};    ///< seconds of each leg of this process, if timed
  std::vector<StepTime> legs{};  ///< of leg l of chunk c at c * legs + l, if timed; since the start
};

/// A pipeline with its buffers and streams, to be run any number of times. One thread at a time.
///
/// Over several processes the constructor and run() are collective. A leg between two processes is
/// a copy between them. Each chunk's end is sent to the processes that wait for it, with its stage,
/// level, number and direction. A failure in one process ends the run in all, with one error.
class Pipeline {
 public:
  /// Makes the buffers of this process. \throws Error(bad_argument) for a level without a device,
  /// no items in a chunk, missing functions, and as make_schedule(); Error(out_of_memory)
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// Passes all chunks through and returns when the last has passed. If anything fails, it starts
  /// nothing more, waits for what runs, and throws. The pipeline can be run again.
  /// \throws Error naming stage, level and chunk: of a function's own kind, or kernel_failed for
  /// exceptions that are not an Error; bad_argument for segments outside their buffer;
  /// device_failed
  PipelineResult run(PipelineRun const& how = {});

  Schedule const& schedule() const;
  /// Memory of all its buffers.
  Bytes buffer_bytes() const;
  /// The first slot of a buffer of the schedule; null if the buffer is your memory. \throws
  /// Error(bad_argument)
  void* buffer(u32 number) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A timed run as a timeline in the trace event format. It has a row for each leg, in the order in
/// which chunks pass them. tools/timeline.py draws it. \throws Error(bad_argument) if the run was
/// not timed
std::string to_perfetto(Schedule const& schedule, PipelineResult const& result,
                        std::string const& name);

}  // namespace meshpost
