#pragma once
#include <string>
#include <vector>

#include "meshpost/pipeline/pipeline.hpp"

namespace meshpost::pipelining {

/// What is said of the options of a pipeline in this process, before anything is made.
/// \throws Error(bad_argument)
void check(PipelineOptions const& options, u32 process, u32 processes);
/// Whether this process's function is asked for the segments of some leg. \throws if it is missing
void check_segments_function(PipelineOptions const& options);

u64 chunks_of(PipelineOptions const& options);
/// Without the number of chunks.
ScheduleShape shape_of(PipelineOptions const& options);
/// The process of each level.
std::vector<u32> processes_of(PipelineOptions const& options);
/// What must be the same in all processes, for people.
std::string describe(PipelineOptions const& options);

/// \throws Error(bad_argument) for pieces outside a chunk's buffer
void check_segments(std::vector<Segment> const& segments, ChunkMove const& move);

}  // namespace meshpost::pipelining
