// A pipeline's process that forks: the child leaves the run and the job alone.
#include <meshpost/pipeline/pipeline.hpp>

#include "pipeline/pipelines.hpp"
#include "support/forked.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::require;
using test::Role;

// Returns true in the child, after it has destroyed all inherited objects.
bool fork_with_a_pipeline() {
  JobMemory job;
  auto const device = test::test_devices()[0];
  std::vector<u8> const from(16'000, 5);
  std::vector<u8> to(from.size());
  PipelineOptions options;
  options.levels = {{device, MemoryKind::pageable, 0},
                    {device, MemoryKind::pinned, job.processes() - 1},
                    {device, MemoryKind::device, job.processes() - 1}};
  options.items = 1000, options.chunk = 10, options.item = Bytes{16};
  options.job = &job;
  options.segments = [&](ChunkMove const& move) {
    u64 const offset = move.first * 16;
    return std::vector<Segment>{move.whole(to.data() + offset, from.data() + offset)};
  };
  Pipeline pipeline(options);
  pipeline.run();
  pid_t const child = fork();
  if (child == 0) {
    print_error([&] { pipeline.run(); });
    print_error([&] { Pipeline const another(options); });
    return true;
  }
  require(test::status_of(child) == 0, "the child ended well");
  std::ranges::fill(to, u8{0});
  pipeline.run();
  if (job.process() == 0) require(to == from, "the parents' pipeline goes on");
  return false;
}

Role const pipeline_that_forks("pipeline_that_forks", [] {
  if (fork_with_a_pipeline()) test::return_from_main();
});

TEST(JobPipelines, leave_the_job_alone_in_a_forked_child) {
  for (u32 const processes : {1, 2}) {
    test::Job job("pipeline_that_forks", processes);
    auto const& all = job.wait();
    test::expect_well(all);
    for (auto const& one : all) EXPECT_THAT(one.out, testing::HasSubstr("was forked from"));
  }
}

}  // namespace
}  // namespace meshpost
