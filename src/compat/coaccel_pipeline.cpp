#include <fmt/format.h>

#include "compat/coaccel_error.hpp"
#include "compat/coaccel_group.hpp"

// Figure 4: pipelines.

using namespace meshpost;
using coaccel::guarded;
using coaccel::refuse;

struct coaccel_pipeline_s {
  coaccel_pipeline_transfer_t load, save;
  coaccel_pipeline_process_t start, sync;
  void* data;
  size_t chunk;
  std::unique_ptr<Pipeline> pipeline{};
};

namespace {

constexpr u32 depth = 2;  // neighbouring stages overlap

std::vector<Segment> pieces(coaccel_pipeline_s const& desc, ChunkMove const& move) {
  auto const function = move.stage == Stage::load ? desc.load : desc.save;
  auto const name = move.stage == Stage::load ? "load_func" : "save_func";
  bool const whole_is_known = move.target && move.source;
  if (!function) {
    if (whole_is_known) return {move.whole()};
    refuse(name, "it is null, but chunks come from or go to your memory", "give it");
  }
  auto const request = function(static_cast<int>(move.level), move.first,
                                move.chunk % depth * desc.chunk, move.count, desc.data);
  if (request.count != COACCEL_WHOLE)
    return coaccel::segments_of(name, request.count, request.dst, request.src, request.size);
  if (!whole_is_known) refuse(name, "COACCEL_WHOLE, but one end is your memory", "list the pieces");
  return {move.whole()};
}

void process(coaccel_pipeline_s const& desc, int mode, ChunkWork const& work) {
  auto const function = mode == COACCEL_START ? desc.start : desc.sync;
  int const code = function(mode, work.first, work.chunk % depth * desc.chunk, desc.data);
  if (code != 0)
    throw Error(Kind::kernel_failed,
                mode == COACCEL_START ? "process_start_func" : "process_sync_func",
                fmt::format("it returned {}", code), "see the function");
}

}  // namespace

extern "C" {

coaccel_pipeline coaccel_pipeline_init(coaccel_device_group devices, size_t size, size_t szchunk,
                                       int reverse, coaccel_pipeline_transfer_t load_func,
                                       coaccel_pipeline_transfer_t save_func,
                                       coaccel_pipeline_process_t process_start_func,
                                       coaccel_pipeline_process_t process_sync_func, void* ptr) {
  return guarded("coaccel_pipeline_init", [&]() -> coaccel_pipeline {
    if (!devices) refuse("coaccel_pipeline_init", "the group is null", "make one");
    auto desc = std::make_unique<coaccel_pipeline_s>(coaccel_pipeline_s{
        load_func, save_func, process_start_func, process_sync_func, ptr, szchunk});
    PipelineOptions options;
    for (auto const device : devices->devices) options.levels.push_back(device->level);
    options.items = size;
    options.chunk = szchunk;
    options.item = Bytes{1};
    options.depth = depth;
    options.reverse = reverse != 0;
    options.segments_between_buffers = true;
    options.segments = [self = desc.get()](ChunkMove const& move) { return pieces(*self, move); };
    if (devices->compute >= 0) {
      if (!process_start_func)
        refuse("coaccel_pipeline_init",
               fmt::format("device {} computes, but process_start_func is null", devices->compute),
               "give it, or a group in which none computes");
      Compute compute{static_cast<u32>(devices->compute)};
      compute.start = [self = desc.get()](ChunkWork const& work) {
        process(*self, COACCEL_START, work);
      };
      if (process_sync_func)
        compute.sync = [self = desc.get()](ChunkWork const& work) {
          process(*self, COACCEL_SYNC, work);
        };
      options.compute.push_back(std::move(compute));
    }
    desc->pipeline = std::make_unique<Pipeline>(std::move(options));
    return desc.release();
  });
}

coaccel_address coaccel_pipeline_buffer(coaccel_pipeline desc, int level, int direction) {
  return guarded("coaccel_pipeline_buffer", [&]() -> coaccel_address {
    if (!desc) refuse("coaccel_pipeline_buffer", "the pipeline is null", "make one");
    auto const& buffers = desc->pipeline->schedule().buffers;
    // On its way from home a chunk comes to a level first, and on its way back last.
    std::vector<u32> here;
    for (u32 i = 0; i < buffers.size(); ++i)
      if (static_cast<int>(buffers[i].level) == level && !buffers[i].users) here.push_back(i);
    if (here.empty() || (direction == COACCEL_OUT && here.size() == 1)) return nullptr;
    return desc->pipeline->buffer(direction == COACCEL_OUT ? here.back() : here.front());
  });
}

void coaccel_pipeline_process(coaccel_pipeline desc) {
  guarded("coaccel_pipeline_process", [&] {
    if (!desc) refuse("coaccel_pipeline_process", "the pipeline is null", "make one");
    desc->pipeline->run();
  });
}

void coaccel_pipeline_done(coaccel_pipeline desc) { delete desc; }

}  // extern "C"
