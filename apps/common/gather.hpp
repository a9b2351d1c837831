#pragma once
#include <meshpost/copy/job_memory.hpp>
#include <meshpost/device/backend.hpp>

#include <string>
#include <vector>

// Messages between the processes of an application beside its data. Collective.

namespace meshpost {

/// Returns when all processes have called it. Each may have long work of its own to do first.
inline void meet(JobMemory& job) { job.meet("meet"); }

/// The texts of all processes, by process.
inline std::vector<std::string> gather(JobMemory& job, std::string mine) {
  meet(job);
  auto const texts = job.expose(mine.data(), Bytes{mine.size()}, "texts");
  std::vector<std::string> all;
  for (u32 process = 0; process < job.processes(); ++process) {
    auto& text = all.emplace_back(texts.part(process).size, '\0');
    copy(text.data(), texts.at(process, 0, texts.part(process).size));
  }
  meet(job);  // until then others may read
  return all;
}

/// The devices of this process in a job of several: those that `spec` names, else one GPU or a CPU
/// device.
inline std::string devices_in_job(std::string const& spec, u32 process) {
  if (!spec.empty()) return spec;
  try {
    u32 const gpus = backend("cuda").count();
    if (gpus > 0) return "cuda:" + std::to_string(process % gpus);
  } catch (Error const&) {  // built without
  }
  return "cpu:1";
}

}  // namespace meshpost
