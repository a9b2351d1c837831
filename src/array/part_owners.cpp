#include "array/part_owners.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "meshpost/base/error.hpp"
#include "world/job.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

void check_given(std::vector<u64> const& given, PlanRequest const& request, bool alone) {
  u64 sum = 0;
  std::string each;
  for (u64 process = 0; process < given.size(); ++process) {
    sum += given[process];
    if (!alone)
      each += fmt::format("{}process {}: {}", process == 0 ? " (" : ", ", process, given[process]);
  }
  if (sum == request.parts) return;
  auto remedy = fmt::format("give {} for each part, which may be empty", request.one);
  if (!alone)
    remedy = fmt::format(
        "give each process {} for each of its own parts; with a World, these are its "
        "World::devices(), and the array has World::device_count() parts",
        request.one);
  else if (auto const job = job_from(std::getenv); !job.alone())
    remedy += fmt::format(
        "; this is one of {} processes of a job: give a JobMemory, too, then the lists of its own "
        "parts alone",
        job.processes);
  throw Error(Kind::bad_argument, make_a_plan,
              fmt::format("{} of {} part{} were given{}, and the array has {}", request.of_parts,
                          sum, sum == 1 ? "" : "s", alone ? each : each + ")", request.parts),
              remedy);
}

}  // namespace

Owners find_owners(ProcessGroup const& group, PlanRequest const& request) {
  auto const all = group.gather(make_a_plan, [&] {
    return wire::Packer()
        .value(request.parts_here)
        .value(request.fingerprint)
        .text(request.described)
        .take();
  });
  Owners owners;
  std::vector<u64> given;
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    given.push_back(unpacker.value<u64>());
    if (unpacker.value<u64>() != request.fingerprint)
      throw Error(Kind::bad_argument, make_a_plan,
                  fmt::format("process {} has {} ({}) than this one ({})", process, request.what,
                              unpacker.text(), request.described),
                  request.remedy);
  }
  check_given(given, request, group.alone());
  for (u32 process = 0; process < given.size(); ++process) {
    owners.first.push_back(static_cast<u32>(owners.processes.size()));
    owners.processes.insert(owners.processes.end(), given[process], process);
  }
  return owners;
}

}  // namespace meshpost
