#pragma once
#include <string>
#include <vector>

#include "meshpost/pipeline/pipeline.hpp"
#include "pipeline/distribution.hpp"

namespace meshpost::pipelining {

/// Checks the options of a pipeline in this process, before anything is made.
void check(PipelineOptions const& options, u32 process, u32 processes);
/// Checks the function for segments if this process calls it for some leg. \throws if it is missing
void check_segments_function(PipelineOptions const& options);

using Carrier = decltype(Level::carry);
/// The function that moves the pieces of a leg; empty: they are copied.
Carrier const& carrier(PipelineOptions const& options, Schedule const& schedule, u32 leg);
/// \throws Error(bad_argument) for one where chunks rest in a buffer, and beside another process
void check_carriers(PipelineOptions const& options, Schedule const& schedule,
                    Distribution const& distribution);

u64 chunks_of(PipelineOptions const& options);
/// The schedule's shape, without the number of chunks.
ScheduleShape shape_of(PipelineOptions const& options);
/// The process of each level.
std::vector<u32> processes_of(PipelineOptions const& options);
/// A text of the options that must be the same in all processes.
std::string describe(PipelineOptions const& options);

/// \throws Error(bad_argument) for pieces outside a chunk's buffer
void check_segments(std::vector<Segment> const& segments, ChunkMove const& move);

}  // namespace meshpost::pipelining
