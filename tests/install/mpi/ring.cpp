// A ring of all processes that mpirun has started.
#include <meshpost/meshpost.hpp>
#include <meshpost/rma/mpi.hpp>

#include <cstdio>

namespace mp = meshpost;

struct Ring {
  mp::Window<int> inbox;
  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = static_cast<int>(self.id());
    self.put_notify(inbox.at(mp::RankId{(self.id() + 1) % self.size()}, 0), mine.subspan(1, 1),
                    mp::Tag{0});
    self.wait(inbox, mp::Tag{0});
    if (mine[0] != static_cast<int>((self.id() + self.size() - 1) % self.size()))
      self.fail("the wrong number came");
  }
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int result = 0;
  try {
    mp::World world(mp::options_over(MPI_COMM_WORLD, {.devices = "cpu:1"}));
    world.run(Ring{world.window<int>(2)});
    if (world.process() == 0)
      std::printf("%u ranks of %u processes passed their numbers on\n", world.size(),
                  world.processes());
  } catch (mp::Error const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    result = 1;
  }
  MPI_Finalize();
  return result;
}
