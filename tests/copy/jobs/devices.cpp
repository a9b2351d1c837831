// Memory of devices, which may be GPUs, between processes with and without devices.
#include <meshpost/copy/job_memory.hpp>

#include <random>

#include "copy/jobs/jobs.hpp"
#include "support/bytes.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::require;
using test::Role;

std::vector<u8> pattern(u64 size, u32 seed) {
  std::mt19937_64 random(seed);
  return test::random_data(random, size);
}

// Process p's device is the p-th; the last process has none. Each process puts its pattern into its
// own part of every device's memory. It gets it back through its own device, and checks its own
// memory.
Role const device_copies("device_copies", [] {
  JobMemory job;
  u32 const me = job.process(), all = job.processes();
  bool const bare = me + 1 == all;
  auto const devices = open_devices(bare ? "cpu:1" : test::devices());
  auto const& device = devices[me % devices.size()];
  for (u64 const share : {u64{1}, u64{1000}, u64{100'001}, (u64{3} << 20) + 7}) {
    for (bool const of_job : {false, true}) {
      Bytes const size{bare ? 0 : share * all};
      Allocation memory;
      if (!bare)
        memory = of_job ? job.allocate(*device, size) : device->allocate(size, MemoryKind::device);
      auto const field = job.expose(memory.data(), size, "field");
      auto const mine = pattern(share, me);
      auto const source = device->allocate(Bytes{share}, MemoryKind::device);
      auto const target = device->allocate(Bytes{share}, MemoryKind::device);
      device->write(source.data(), mine.data(), Bytes{share});
      for (u32 process = 0; process + 1 < all; ++process) {
        auto const there = field.at(process, me * share, Bytes{share});
        if (process % 2 == 0) copy(there, source.data());
        else copy(there, mine.data());
        copy(target.data(), there);
        std::vector<u8> back(share), direct(share);
        device->read(back.data(), target.data(), Bytes{share});
        copy(direct.data(), there);
        require(back == mine, "what was put comes back to the device");
        require(direct == mine, "and to the host");
      }
      auto const meeting = job.expose(nullptr, Bytes{}, "meet");
      std::vector<u8> here(size);
      if (!bare) device->read(here.data(), memory.data(), size);
      for (u32 process = 0; process < all && !bare; ++process)
        require(std::vector<u8>(here.begin() + static_cast<i64>(process * share),
                                here.begin() + static_cast<i64>((process + 1) * share)) ==
                    pattern(share, process),
                "all have put");
    }
  }
});

TEST(JobCopies, between_devices_and_processes_without_arrive) {
  for (u32 const processes : {2, 3, 4}) {
    test::Job job("device_copies", processes, {}, [&](u32 process) -> test::Variables {
      if (process + 1 == processes) return {{"MESHPOST_DEVICES", "none"}};
      return {};
    });
    test::expect_well(job.wait());
  }
}

}  // namespace
}  // namespace meshpost
