// A kernel that stays on its devices, and a host that sends it work and takes the results.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <span>
#include <vector>

namespace mp = meshpost;

constexpr mp::u32 batches = 20, numbers = 100;  // of each rank and batch
constexpr mp::Tag work{0}, done{1};

// [kernel]
struct Squares {
  mp::Window<double> box;  // the numbers, and behind them their squares
  mp::HostId host;

  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const mine = box.local(self);
    for (mp::u32 batch = 0; batch < batches; ++batch) {
      self.wait(box, work);
      for (mp::u32 i = self.thread(); i < numbers; i += self.threads())
        mine[numbers + i] = mine[i] * mine[i];
      self.notify(box, host, done);
    }
  }
};
// [/kernel]

int main() try {
  mp::World world;
  bool right = true;
  mp::u32 const first = world.first_rank();
  mp::u32 const mine = static_cast<mp::u32>(world.devices().size()) * world.ranks_per_device();
  std::vector<double> values(numbers), squares(numbers);
  // [host]
  auto const box = world.window<double>(2 * numbers, mp::Tags{2}, "box");
  mp::Launch launch;
  launch.with_host = true;  // the host's operations on windows happen at once
  auto run = world.launch(Squares{box, world.host()}, launch);
  for (mp::u32 batch = 0; batch < batches; ++batch) {
    for (mp::u32 rank = first; rank < first + mine; ++rank) {
      for (mp::u32 i = 0; i < numbers; ++i) values[i] = batch + rank + i;
      box.put_notify(mp::RankId{rank}, 0, std::span<double const>(values), work);
    }
    box.wait(done, mine);  // one from each rank of this process
    for (mp::u32 rank = first; rank < first + mine; ++rank) {
      box.read(mp::RankId{rank}, numbers, std::span(squares));
      for (mp::u32 i = 0; i < numbers; ++i) {
        double const number = batch + rank + i;
        right &= squares[i] == number * number;
      }
    }
  }
  right &= run.wait().unconsumed.empty();
  // [/host]
  std::printf("process %u: %u ranks squared %u batches of %u numbers%s\n", world.process(), mine,
              batches, numbers, right ? "" : ", not all of them right");
  return right ? 0 : 1;
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
