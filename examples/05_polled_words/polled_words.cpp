// Rank 0 writes a number to words that the others poll. It does other work while their answers
// arrive.
#include <meshpost/meshpost.hpp>

#include <cstdio>

namespace mp = meshpost;

constexpr mp::u32 rounds = 20;

// [kernel]
struct Rounds {
  mp::Window<mp::u64> words;   // 0: the round that rank 0 has announced
  mp::Window<mp::u64> counts;  // 0: rounds that this rank has done, 1: rank 0's other work

  static constexpr mp::Tag answer{0};

  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const count = counts.local(self);
    for (mp::u64 round = 1; round <= rounds; ++round) {
      if (self.id() == 0) {
        for (mp::u32 rank = 1; rank < self.size(); ++rank)
          self.put_value(words.at(mp::RankId{rank}), round);
        while (!self.test(words, answer, self.size() - 1))
          if (self.thread() == 0) ++count[1];  // a piece of other work
      } else {
        self.wait_until(words.local(self), mp::Compare::greater_equal, round);
        self.notify(words, mp::RankId{0}, answer);
      }
      if (self.thread() == 0) ++count[0];
    }
  }
};
// [/kernel]

int main() try {
  mp::World world;
  Rounds const kernel{world.window<mp::u64>(1, mp::Tags{1}, "words"),
                      world.window<mp::u64>(2, mp::Tags{0}, "counts")};
  auto const result = world.run(kernel);

  bool right = result.unconsumed.empty();  // every answer was consumed
  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    right &= kernel.counts.read(mp::RankId{rank})[0] == rounds;
    right &= rank == 0 || kernel.words.read(mp::RankId{rank})[0] == rounds;
  }
  if (world.process() == 0 || !right)
    std::printf("%u ranks, %u rounds%s; rank 0 did %llu other things meanwhile\n", world.size(),
                rounds, right ? "" : ", not all of them right",
                kernel.counts.read(mp::RankId{0})[1]);
  return right ? 0 : 1;
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
