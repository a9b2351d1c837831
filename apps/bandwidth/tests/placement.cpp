// Placement of a process on the cores of a NUMA node that the test describes in files.
#include "bandwidth/placement.hpp"

#include <gmock/gmock.h>
#include <meshpost/base/error.hpp>

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

namespace bandwidth {
namespace {

using meshpost::Error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class Work>
std::string error_of(Work const& work) {
  try {
    work();
  } catch (Error const& error) {
    return error.what();
  }
  return "no error";
}

cpu_set_t allowed() {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

// Nodes of a host in files: node 0 has the last core that this process may use, node 1 one that no
// host has. Afterwards the process has its cores again.
class Placement : public testing::Test {
 protected:
  Placement() : before_(allowed()) {
    for (unsigned core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) last_ = core;
    write("has_cpu", "0-1");
    write("node0/cpulist", std::to_string(last_));
    write("node1/cpulist", "1023");
  }
  ~Placement() override {
    sched_setaffinity(0, sizeof before_, &before_);
    std::filesystem::remove_all(folder_);
  }
  void write(std::string const& name, std::string const& text) {
    auto const file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::filesystem::path const folder_ =
      std::filesystem::temp_directory_path() / ("placement-" + std::to_string(getpid()));
  cpu_set_t before_;
  unsigned last_ = 0;
};

TEST_F(Placement, binds_running_and_later_threads_to_the_cores_of_a_node) {
  std::promise<void> bound;
  auto running = std::async(std::launch::async, [&] {
    bound.get_future().wait();
    return allowed();
  });
  run_on_node(0, folder_);
  bound.set_value();
  auto later = std::async(std::launch::async, allowed);
  for (auto const& cores : {allowed(), running.get(), later.get()}) {
    EXPECT_EQ(CPU_COUNT(&cores), 1);
    EXPECT_TRUE(CPU_ISSET(last_, &cores));
  }
}

TEST_F(Placement, names_the_nodes_that_there_are) {
  auto const error = error_of([&] { run_on_node(2, folder_); });
  EXPECT_THAT(error, HasSubstr("--cpu-node 2: this host has no NUMA node of that number"));
  EXPECT_THAT(error, HasSubstr("the nodes are 0-1"));
  EXPECT_THAT(error_of([&] { run_on_node(0, folder_ / "none"); }),
              HasSubstr("the system describes no nodes"));
}

TEST_F(Placement, refuses_a_node_whose_cores_the_process_may_not_use) {
  if (CPU_ISSET(1023, &before_)) GTEST_SKIP() << "this host has core 1023";
  EXPECT_THAT(error_of([&] { run_on_node(1, folder_); }),
              HasSubstr("--cpu-node 1: this process may use none of that node's cores"));
  auto const now = allowed();
  EXPECT_TRUE(CPU_EQUAL(&now, &before_));
}

TEST(Nodes, are_given_to_processes_in_turn) {
  EXPECT_EQ(node_of_process({3}, 5, 8), 3u);
  EXPECT_EQ(node_of_process({0, 1}, 5, 8), 1u);
  EXPECT_THAT(error_of([] { node_of_process({0, 1}, 0, 1); }),
              HasSubstr("2 nodes are named for 1 process; name one node"));
}

TEST(Lists, of_the_kernel_are_read) {
  EXPECT_THAT(numbers_in("0-2,8,10-11"), ElementsAre(0, 1, 2, 8, 10, 11));
  EXPECT_THAT(numbers_in(""), IsEmpty());
  EXPECT_THAT(numbers_in("x"), IsEmpty());
  EXPECT_THAT(numbers_in("3-"), IsEmpty());
  EXPECT_THAT(numbers_in("4294967295"), IsEmpty());  // no host has so many
  EXPECT_THAT(numbers_in("0-4294967295"), testing::SizeIs(CPU_SETSIZE));
}

}  // namespace
}  // namespace bandwidth
