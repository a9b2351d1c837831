// Copies between processes. Each process knows the bytes that the others' memory must hold.
#include <meshpost/copy/job_memory.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "copy/jobs/jobs.hpp"

namespace meshpost {
namespace {

using test::expect_well;
using test::require;
using test::Role;
using testing::HasSubstr;

// Memory of one of the kinds that CPU devices have.
struct Memory {
  Allocation owned;
  std::vector<u8> heap;
  u8* data = nullptr;

  Memory(JobMemory& job, u32 kind, u64 size) {
    auto const device = open_devices("cpu:1")[0];
    switch (kind % 5) {
      case 0: heap.resize(size), data = heap.data(); return;
      case 1: owned = job.allocate(Bytes{size}); break;
      case 2: owned = job.allocate(*device, Bytes{size}); break;
      case 3: owned = device->allocate(Bytes{size}, MemoryKind::device); break;
      default: owned = device->allocate(Bytes{size}, MemoryKind::pinned);
    }
    data = owned.as<u8>();
  }
};

u8 byte_of(u32 process, u64 i) { return static_cast<u8>(i * 7 + i / 251 + process * 31); }

// Each process puts into its own part of every process's memory, and gets from all of it.
Role const random_copies("random_copies", [] {
  JobMemory job;
  u32 const me = job.process(), all = job.processes();
  std::mt19937_64 common(77), own(me);
  for (int round = 0; round < 12; ++round) {
    std::vector<u64> sizes(all);
    for (auto& size : sizes) size = round == 3 ? 0 : common() % (round < 10 ? 5000 : 700'000);
    u64 const share = *std::ranges::min_element(sizes) / all;  // bytes for each process
    Memory const mine(job, static_cast<u32>(own()), sizes[me] + 1);
    for (u64 i = 0; i < sizes[me]; ++i) mine.data[i] = byte_of(me, i);
    auto const field = job.expose(mine.data, Bytes{sizes[me]}, "field");
    auto const expected = [&](u32 process, u64 i, bool written) {
      bool const in = i / std::max<u64>(share, 1) < all && share > 0;
      return written && in ? static_cast<u8>(byte_of(process, i) + 100 + i / share)
                           : byte_of(process, i);
    };
    auto const check = [&](bool written) {
      for (u32 process = 0; process < all; ++process)
        for (int i = 0; i < 5; ++i) {
          u64 const offset = own() % (sizes[process] + 1);
          u64 const size = own() % (sizes[process] - offset + 1);
          Memory const target(job, static_cast<u32>(own()), size + 1);
          target.data[size] = 99;
          copy(target.data, field.at(process, offset, Bytes{size}));
          for (u64 j = 0; j < size; ++j)
            if (target.data[j] != expected(process, offset + j, written))
              require(false, "byte " + std::to_string(offset + j) + " of process " +
                                 std::to_string(process) + " in round " + std::to_string(round));
          require(target.data[size] == 99, "nothing beyond the end");
        }
    };
    auto const together = [&] { auto const meeting = job.expose(nullptr, Bytes{}, "meet"); };
    check(false);
    together();
    std::vector<Memory> sources;
    std::vector<Copy> under_way;
    std::vector<RemotePut> batch;
    for (u32 process = 0; process < all; ++process) {
      if (share == 0) break;
      u64 const begin = me * share, cut = own() % (share + 1);
      auto& source = sources.emplace_back(job, static_cast<u32>(own()), share);
      for (u64 i = 0; i < share; ++i) source.data[i] = expected(process, begin + i, true);
      under_way.push_back(copy_async(field.at(process, begin, Bytes{cut}), source.data));
      batch.push_back({field.at(process, begin + cut, Bytes{share - cut}), source.data + cut});
    }
    auto rest = put_batch(batch);
    for (auto& one : under_way) one.wait();
    rest.wait();
    together();
    check(true);
    together();  // nobody frees memory that others still check
  }
});

// The same program, also with one process.
Role const many_at_once("many_at_once", [] {
  JobMemory job;
  u32 const me = job.process(), all = job.processes();
  constexpr u64 size = 600'001, threads = 4;
  std::vector<u8> mine(size * all * threads, 0);
  auto const field = job.expose(mine.data(), Bytes{mine.size()}, "field");
  {
    std::vector<std::jthread> workers;
    for (u64 t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        std::vector<u8> const source(size, static_cast<u8>(1 + me * threads + t));
        std::vector<u8> back(size);
        for (u32 process = 0; process < all; ++process) {
          auto const there = field.at(process, (me * threads + t) * size, Bytes{size});
          for (int i = 0; i < 3; ++i) copy(there, source.data());
          copy(back.data(), there);
          require(back == source, "what was put comes back");
        }
      });
  }
  auto const meeting = job.expose(nullptr, Bytes{}, "meet");
  for (u64 i = 0; i < mine.size(); ++i)
    if (mine[i] != 1 + i / size) require(false, "byte " + std::to_string(i));
});

Role const paths("paths", [] {
  JobMemory job;
  std::vector<u8> heap(100);
  auto const shared = job.allocate(Bytes{100});
  auto const plain = job.expose(heap.data(), Bytes{100}, "plain");
  auto const mapped = job.expose(shared.data(), Bytes{100}, "shared");
  for (u32 process = 0; process < job.processes(); ++process)
    std::printf("%u: %s, %s; %s|%s\n", process,
                std::string(to_string(plain.part(process).path)).c_str(),
                std::string(to_string(mapped.part(process).path)).c_str(),
                plain.part(process).why.c_str(), mapped.part(process).why.c_str());
});

TEST(JobCopies, arrive_whatever_memory_they_are_between) {
  for (u32 const processes : {1, 2, 3, 4}) {
    SCOPED_TRACE(processes);
    test::Job job("random_copies", processes);
    expect_well(job.wait());
  }
}

TEST(JobCopies, from_many_threads_at_once_all_arrive) {
  for (u32 const processes : {1, 2, 3}) {
    test::Job job("many_at_once", processes);
    expect_well(job.wait());
  }
}

TEST(JobCopies, take_the_path_that_is_there_and_say_why) {
  if (!test::network) GTEST_SKIP() << "built without a network engine";
  test::Job job("paths", 3, {}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_NODE", process == 2 ? "far" : "near"}};
  });
  auto const& all = job.wait();
  expect_well(all);
  EXPECT_THAT(all[0].out, HasSubstr("0: own, own; |"));
  EXPECT_THAT(all[0].out, HasSubstr("1: kernel, mapped; it is not of JobMemory::allocate"));
  EXPECT_THAT(all[0].out, HasSubstr("2: network, network; it is on another node: MESHPOST_NODE"));
  EXPECT_THAT(all[2].out, HasSubstr("1: network, network; it is on another node: MESHPOST_NODE"));
}

TEST(JobCopies, go_through_a_thread_of_the_owner_where_the_system_refuses) {
  for (auto const* const role : {"random_copies", "many_at_once", "paths"}) {
    test::Job job(role, 3, {{test::without_other_memory, "1"}, {"MESHPOST_NODE", "one"}});
    auto const& all = job.wait();
    expect_well(all);
    for (auto const& one : all) {
      std::string_view const out = one.out;
      EXPECT_THAT(one.out, HasSubstr("kernel.yama.ptrace_scope=0"));
      EXPECT_THAT(one.out, HasSubstr("--cap-add=SYS_PTRACE"));
      auto const first = out.find("take a slower path");
      EXPECT_NE(first, out.npos);
      EXPECT_EQ(out.find("take a slower path", first + 1), out.npos) << "once";
    }
    if (std::string_view(role) == "paths") {
      EXPECT_THAT(all[0].out, HasSubstr("1: staged, mapped;"));
    }
  }
}

TEST(JobCopies, mix_refused_and_permitted_and_far_processes) {
  if (!test::network) GTEST_SKIP() << "built without a network engine";
  test::Job job("random_copies", 4, {}, [](u32 process) -> test::Variables {
    test::Variables own{{"MESHPOST_NODE", process == 3 ? "far" : "near"}};
    if (process == 1) own[test::without_other_memory] = "1";
    return own;
  });
  expect_well(job.wait());
}

TEST(JobCopies, need_no_device) {
  test::Job job("many_at_once", 3, {}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_DEVICES", process == 1 ? "none" : "cpu:2"}};
  });
  expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
