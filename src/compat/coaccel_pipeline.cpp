#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "base/thread.hpp"
#include "compat/coaccel_error.hpp"
#include "compat/coaccel_group.hpp"

// Figure 4: pipelines.

using namespace meshpost;
using coaccel::guarded;
using coaccel::refuse;

// If the level at the far end is another process's, chunks leave on one pipeline and return on
// another: the other process decides when, so buffers here must not wait for a chunk's return.
struct coaccel_pipeline_s {
  coaccel_pipeline_transfer_t load, save;
  coaccel_pipeline_process_t start, sync;
  void* data;
  size_t chunk;
  int compute;  // the level; -1: none
  std::vector<std::shared_ptr<coaccel::FarDevice>> far{};
  std::vector<Allocation> stand_ins{};  // for each level: addresses of a chunk in another process
  std::unique_ptr<Pipeline> there{}, back{};  // back: only if chunks leave this process
  std::mutex asking{};                        // held while load or save gives pieces
  std::mutex failing{};
  std::optional<Error> first{};  // of a run
};

namespace {

constexpr u32 depth = 2;  // neighbouring stages overlap

std::vector<Segment> pieces(coaccel_pipeline_s& desc, ChunkMove move) {
  bool const loads = move.stage == Stage::load;
  auto const function = loads ? desc.load : desc.save;
  auto const name = loads ? "load_func" : "save_func";
  if (!move.target) move.target = desc.stand_ins[move.level].data();
  if (!move.source) move.source = desc.stand_ins[loads ? move.level - 1 : move.level + 1].data();
  bool const whole_is_known = move.target && move.source;
  if (!function) {
    if (whole_is_known) return {move.whole()};
    refuse(name, "it is null, but chunks come from or go to your memory", "give it");
  }
  std::scoped_lock const lock(desc.asking);
  auto const request = function(static_cast<int>(move.level), move.first,
                                move.chunk % depth * desc.chunk, move.count, desc.data);
  if (request.count != COACCEL_WHOLE)
    return coaccel::segments_of(name, request.count, request.dst, request.src, request.size);
  if (!whole_is_known) refuse(name, "COACCEL_WHOLE, but one end is your memory", "list the pieces");
  return {move.whole()};
}

// Ends the waits for other processes, and tells them.
void end_waits(coaccel_pipeline_s& desc, Error const& error) {
  {
    std::scoped_lock const lock(desc.failing);
    if (!desc.first) desc.first = error;
  }
  for (auto const& far : desc.far) far->network->fail(far->key, error);
}

void check_places(coaccel_device_group_s const& group) {
  auto const count = static_cast<int>(group.devices.size());
  for (int i = 0; i < count; ++i) {
    auto const& far = group.devices[static_cast<std::size_t>(i)]->far;
    if (!far) continue;
    auto const name = coaccel::name_of(far->key);
    if (i != 0 && i != count - 1)
      refuse("coaccel_pipeline_init", fmt::format("device {} of {} is {}", i, count, name),
             "put it first or last: levels beyond it belong to the other process's group");
    if (i != 0 && group.devices.front()->far && group.devices.front()->far->key == far->key)
      refuse("coaccel_pipeline_init", fmt::format("devices 0 and {} are both {}", i, name),
             "give the two ends of the pipeline different processes or identifiers");
    if (i == group.compute)
      refuse("coaccel_pipeline_init", fmt::format("device {} computes, but it is {}", i, name),
             "let the other process compute, in its own group");
  }
}

Level level_of(coaccel_pipeline_s& desc, coaccel_device device) {
  auto level = device->level;
  auto const& far = device->far;
  desc.stand_ins.push_back(far ? coaccel::far_addresses(far, Bytes{desc.chunk}) : Allocation());
  if (!far) return level;
  desc.far.push_back(far);
  level.carry = [](std::vector<Segment> const& segments) {
    coaccel::Pieces("copy a chunk", segments).wait();
  };
  return level;
}

// Runs both ways at once.
void run(coaccel_pipeline_s& desc) {
  desc.first.reset();
  if (desc.far.empty()) {
    desc.there->run();
    return;
  }
  auto const one = [&desc](Pipeline& way) {
    try {
      way.run();
    } catch (...) {
      end_waits(desc, caught("coaccel_pipeline_process"));
    }
  };
  std::thread back;
  if (desc.back) try {
      back = start_thread("bring chunks back", [&] { one(*desc.back); });
    } catch (...) {
      end_waits(desc, caught("coaccel_pipeline_process"));
      throw;
    }
  one(*desc.there);
  if (back.joinable()) back.join();
  if (desc.first) throw Error(*desc.first);
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
    check_places(*devices);
    if (szchunk == 0)
      refuse("coaccel_pipeline_init", "chunks of 0 bytes", "let a chunk have 1 byte or more");
    std::unique_ptr<coaccel_pipeline_s> desc(
        new coaccel_pipeline_s{load_func, save_func, process_start_func, process_sync_func, ptr,
                               szchunk, devices->compute});
    PipelineOptions options;
    for (auto const device : devices->devices) options.levels.push_back(level_of(*desc, device));
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
    options.failed = [self = desc.get()](Error const& error) { end_waits(*self, error); };
    auto const& ends = devices->devices;
    if ((reverse ? ends.front() : ends.back())->far) {
      options.back = false;
      auto returning = options;
      returning.reverse = !options.reverse;
      returning.compute.clear();
      desc->back = std::make_unique<Pipeline>(std::move(returning));
    }
    desc->there = std::make_unique<Pipeline>(std::move(options));
    return desc.release();
  });
}

coaccel_address coaccel_pipeline_buffer(coaccel_pipeline desc, int level, int direction) {
  return guarded("coaccel_pipeline_buffer", [&]() -> coaccel_address {
    if (!desc) refuse("coaccel_pipeline_buffer", "the pipeline is null", "make one");
    if (level >= 0 && static_cast<std::size_t>(level) < desc->stand_ins.size())
      if (auto* const other = desc->stand_ins[static_cast<std::size_t>(level)].data()) return other;
    auto& pipeline = direction == COACCEL_OUT && desc->back ? *desc->back : *desc->there;
    auto const& [shape, legs, buffers] = pipeline.schedule();
    if (direction == COACCEL_COMPUTED) {
      auto const leg = std::ranges::find(legs, Stage::comp, &Leg::stage);
      bool const here = leg != legs.end() && level == desc->compute;
      return here ? pipeline.buffer(static_cast<u32>(leg - legs.begin()) + 1) : nullptr;
    }
    // On its way from home a chunk comes to a level first, and on its way back last.
    std::vector<u32> here;
    for (u32 i = 0; i < buffers.size(); ++i)
      if (static_cast<int>(buffers[i].level) == level && !buffers[i].users) here.push_back(i);
    bool const turns = direction == COACCEL_OUT && !desc->back && here.size() == 1;
    if (here.empty() || turns) return nullptr;
    return pipeline.buffer(direction == COACCEL_OUT ? here.back() : here.front());
  });
}

void coaccel_pipeline_process(coaccel_pipeline desc) {
  guarded("coaccel_pipeline_process", [&] {
    if (!desc) refuse("coaccel_pipeline_process", "the pipeline is null", "make one");
    refuse_after_fork("coaccel_pipeline_process");
    run(*desc);
  });
}

void coaccel_pipeline_done(coaccel_pipeline desc) { delete desc; }

}  // extern "C"
