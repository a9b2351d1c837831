// A matrix times a vector: the ranks form rows and columns, each with one element of the matrix.
// The vector is broadcast down the columns, the products are summed along the rows.
#include <meshpost/meshpost.hpp>

#include <cstdio>

namespace mp = meshpost;

// [kernel]
struct Multiply {
  mp::Communicator row, column;  // each rank means its own
  mp::Window<double> values;     // at every rank: x, y

  MESHPOST_FN static double element(mp::u32 i, mp::u32 j) { return i + 3.0 * j + 1; }

  MESHPOST_FN void operator()(mp::Rank& self) const {
    auto const i = self.id(column),
               j = self.id(row);  // this rank's number in its column and in its row
    auto const x = values.local(self).subspan(0, 1), y = values.local(self).subspan(1, 1);
    if (i == 0 && self.thread() == 0) x[0] = j + 1.0;  // the first row has the vector
    self.broadcast(column, x, mp::RankId{0});
    if (self.thread() == 0) y[0] = element(i, j) * x[0];
    self.all_reduce(row, y, mp::Sum{});
  }
};
// [/kernel]

int main() try {
  mp::World world;
  mp::u32 columns = 1;  // as near to a square as the number of ranks allows
  for (mp::u32 n = 1; n * n <= world.size(); ++n)
    if (world.size() % n == 0) columns = n;

  // [split]
  auto const row =
      world.split(world.communicator(), [=](mp::RankId rank) { return rank / columns; });
  auto const column =
      world.split(world.communicator(), [=](mp::RankId rank) { return rank % columns; });
  auto const values = world.window<double>(2, mp::Tags{0}, "values");  // collectives need no tags
  world.run(Multiply{row, column, values});
  // [/split]

  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    double expected = 0;
    for (mp::u32 j = 0; j < columns; ++j)
      expected += Multiply::element(rank / columns, j) * (j + 1.0);
    if (auto const y = values.read(mp::RankId{rank})[1]; y != expected) {
      std::printf("rank %u has %g, not %g\n", rank, y, expected);
      return 1;
    }
  }
  if (world.process() == 0)
    std::printf("%u rows and %u columns of ranks multiplied\n", world.size() / columns, columns);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
