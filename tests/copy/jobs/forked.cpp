// A child that a process forks leaves its parent's job alone.
#include <meshpost/copy/job_memory.hpp>

#include <cstring>
#include <optional>

#include "copy/jobs/jobs.hpp"
#include "support/forked.hpp"

namespace meshpost {
namespace {

using test::expect_well;
using test::print_error;
using test::require;
using test::Role;

// True if this is the child, which has destroyed all that it inherited.
bool fork_with_exposed_memory() {
  JobMemory job;
  u32 const me = job.process(), next = (me + 1) % job.processes();
  std::vector<u8> plain(1000, static_cast<u8>(me)), here(1000);
  auto shared = std::make_optional(job.allocate(Bytes{1000}));
  std::memset(shared->data(), static_cast<int>(me), 1000);
  auto field = job.expose(plain.data(), Bytes{1000}, "field");
  auto const other = job.expose(shared->data(), Bytes{1000}, "other");
  auto const meet = [&] { auto const meeting = job.expose(nullptr, Bytes{}, "meet"); };
  auto const range = field.at(next, 0, Bytes{1000});
  auto waited_for = copy_async(here.data(), range);
  waited_for.wait();
  meet();  // when it forks, no thread of this process copies for others and holds locks
  pid_t const child = fork();
  if (child == 0) {
    print_error([&] { waited_for.wait(); });
    print_error([&] { copy(here.data(), range); });
    print_error([&] { copy_async(range, here.data()); });
    print_error([&] { copy_async(here.data(), {}, range, {}, {Bytes{1}, 1, 1}); });
    print_error([&] { get_batch(std::vector<RemoteGet>{{here.data(), range}}); });
    print_error([&] { put_batch(std::vector<RemotePut>{{range, here.data()}}); });
    print_error([&] { job.expose(plain.data(), Bytes{1000}, "more"); });
    print_error([&] { job.meet("meet"); });
    print_error([&] { job.allocate(Bytes{1000}); });
    print_error([&] { field.release(); });
    print_error([] { JobMemory const another; });
    shared.reset();
    return true;
  }
  require(test::status_of(child) == 0, "the child ended well");
  meet();
  for (auto const& one : {range, other.at(next, 0, Bytes{1000})}) {
    copy(here.data(), one);
    require(here == std::vector<u8>(1000, static_cast<u8>(next)), "parts are still exposed");
  }
  meet();
  return false;
}

Role const forks("forks", [] {
  if (fork_with_exposed_memory()) test::return_from_main();
});

TEST(JobCopyFork, leaves_the_parents_job_alone_and_refuses_the_childs_calls) {
  for (u32 const processes : {1, 3})
    for (auto const& all : std::vector<test::Variables>{
             {{"MESHPOST_NODE", "one"}},
             {{"MESHPOST_NODE", "one"}, {test::without_other_memory, "1"}}}) {
      test::Job job("forks", processes, all);
      auto const& ended = job.wait();
      expect_well(ended);
      for (auto const& one : ended) {
        u32 refused = 0;
        for (auto at = one.out.find("was forked from"); at != one.out.npos;
             at = one.out.find("was forked from", at + 1))
          ++refused;
        EXPECT_EQ(refused, 11u) << one.out;
      }
    }
}

}  // namespace
}  // namespace meshpost
