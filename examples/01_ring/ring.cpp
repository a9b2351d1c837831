// Every rank puts its number into the next rank's memory, and knows when its own has arrived.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <span>

namespace mp = meshpost;

struct Ring {  // a kernel: one object, copied to every device
  mp::Window<int> inbox;

  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const next = mp::RankId{(self.id() + 1) % self.size()};
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = static_cast<int>(self.id());
    self.put_notify(inbox.at(next, 0), mine.subspan(1, 1), mp::Tag{7});
    self.wait(inbox, mp::Tag{7});  // from here on mine[0] is the previous rank's number
  }
};

int main() try {
  mp::World world;  // all GPUs, or CPU devices if there are none
  auto const inbox =
      world.window<int>(2, mp::Tags{8}, "inbox");  // 2 ints and 8 counters at every rank
  world.run(Ring{inbox});                          // throws mp::Error if a rank failed

  for (mp::u32 r = 0; r < world.size(); ++r) {
    auto const received = inbox.read(mp::RankId{r})[0];
    if (received != static_cast<int>((r + world.size() - 1) % world.size())) {
      std::printf("rank %u received %d\n", r, received);
      return 1;
    }
  }
  if (world.process() == 0)  // one line for the whole job; each process has checked
    std::printf("%u ranks on %u devices passed their numbers on\n", world.size(),
                world.device_count());
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
