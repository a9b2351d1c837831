// Worlds over communicators. Run by four processes at once, each of which makes all of these tests.
#include <meshpost/meshpost.hpp>
#include <meshpost/rma/mpi.hpp>

#include "mpi/communicators.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::rank_in;

struct Pass {
  Window<u64> inbox;
  u64 seed;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const next = RankId{(self.id() + 1) % self.size()};
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = seed + self.id();
    self.put_notify(inbox.at(next, 0), mine.subspan(1, 1), Tag{0});
    self.wait(inbox, Tag{0});
    if (mine[0] != seed + (self.id() + self.size() - 1) % self.size()) self.fail("another number");
  }
};

void pass_numbers(WorldOptions options, u32 processes, u32 process, u64 seed) {
  options.devices = "cpu:1", options.ranks = 2;
  World world(options);
  EXPECT_EQ(world.processes(), processes);
  EXPECT_EQ(world.process(), process);
  EXPECT_EQ(world.size(), processes * 2);
  world.run(Pass{world.window<u64>(2, Tags{1}), seed});
}
void pass_numbers_over(MPI_Comm communicator, u64 seed = 1) {
  int processes = 0;
  MPI_Comm_size(communicator, &processes);
  pass_numbers(options_over(communicator), static_cast<u32>(processes),
               static_cast<u32>(rank_in(communicator)), seed);
}

TEST(OptionsOver, all_processes_make_one_world) { pass_numbers_over(MPI_COMM_WORLD); }

TEST(OptionsOver, a_duplicate_and_a_backward_order_number_the_processes_as_they_do) {
  auto const duplicate = test::duplicate(MPI_COMM_WORLD);
  pass_numbers_over(duplicate.get());
  auto const backward = test::split(MPI_COMM_WORLD, 0, -rank_in(MPI_COMM_WORLD));
  EXPECT_EQ(rank_in(backward.get()), 3 - rank_in(MPI_COMM_WORLD));
  pass_numbers_over(backward.get());
}

TEST(OptionsOver, two_halves_have_worlds_of_their_own_while_all_share_another) {
  auto const rank = rank_in(MPI_COMM_WORLD);
  auto const half = test::split(MPI_COMM_WORLD, rank % 2, rank);
  World all(options_over(MPI_COMM_WORLD, {.ranks = 1}));
  for (int round = 0; round < 3; ++round) {
    World own(options_over(half.get(), {.ranks = 2}));
    EXPECT_EQ(own.processes(), 2u);
    EXPECT_EQ(own.process(), static_cast<u32>(rank / 2));
    auto const inbox = own.window<u64>(2, Tags{1});
    auto run = own.launch(Pass{inbox, 1000u * static_cast<u32>(rank % 2) + 7});
    auto other = all.launch(Pass{all.window<u64>(2, Tags{1}), 5});
    run.wait();
    other.wait();
  }
}

TEST(OptionsOver, halves_need_not_do_the_same) {
  auto const rank = rank_in(MPI_COMM_WORLD);
  auto const half = test::split(MPI_COMM_WORLD, rank < 1 ? 0 : 1, rank);  // one, and three
  for (int i = 0; i <= (rank < 1 ? 3 : 1); ++i) pass_numbers_over(half.get());
  pass_numbers_over(MPI_COMM_WORLD);
}

TEST(OptionsOver, a_communicator_of_one_is_a_world_alone) {
  pass_numbers_over(MPI_COMM_SELF);
  EXPECT_TRUE(options_over(MPI_COMM_SELF).alone);
}

TEST(OptionsOver, several_worlds_are_made_of_the_same_options) {
  auto const options = options_over(MPI_COMM_WORLD, {.ranks = 1});
  World one(options), two(options);
  auto first = one.launch(Pass{one.window<u64>(2, Tags{1}), 3});
  auto second = two.launch(Pass{two.window<u64>(2, Tags{1}), 4});
  second.wait();
  first.wait();
  for (u64 i = 0; i < 3; ++i)
    pass_numbers(options, 4, static_cast<u32>(rank_in(MPI_COMM_WORLD)), i);
}

TEST(OptionsOver, keep_all_else) {
  auto const options = options_over(
      MPI_COMM_SELF, {.devices = "cpu:3", .ranks = 5, .deadline = std::chrono::seconds(9)});
  EXPECT_EQ(options.devices, "cpu:3");
  EXPECT_EQ(options.ranks, 5u);
  EXPECT_EQ(options.deadline, std::chrono::seconds(9));
}

}  // namespace
}  // namespace meshpost
