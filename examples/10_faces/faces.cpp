// A 3-D grid, cut along x into one block for each rank. Neighbours exchange faces, whose elements
// lie a row apart.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

namespace mp = meshpost;

constexpr mp::u64 own = 6;  // cells of a rank in x
constexpr mp::u64 nx = own + 2, ny = 7,
                  nz = 5;  // of its block, which has a layer of each neighbour, too
constexpr mp::u32 steps = 20;

MESHPOST_FN constexpr mp::u64 cell(mp::u64 x, mp::u64 y, mp::u64 z, mp::u64 row) {
  return x + row * (y + ny * z);
}

// The mean of a cell's neighbours. Cells at the borders of y and z do not change.
template <class Field>
MESHPOST_FN double smoothed(Field const& field, mp::u64 x, mp::u64 y, mp::u64 z, mp::u64 row) {
  auto const at = cell(x, y, z, row), plane = row * ny;
  if (y == 0 || y == ny - 1 || z == 0 || z == nz - 1) return field[at];
  return (field[at - 1] + field[at + 1] + field[at - row] + field[at + row] + field[at - plane] +
          field[at + plane]) /
         6;
}

// [kernel]
struct Smooth {
  mp::Window<double> fields[2];  // read from one, written to the other, alternately

  static constexpr mp::Tag from_left{0}, from_right{1};

  MESHPOST_FN void operator()(mp::Rank& self) const {
    bool const first = self.id() == 0, last = self.id() + 1 == self.size();
    mp::RankId const left{self.id() - 1}, right{self.id() + 1};
    auto const block = mp::StridedLayout::dense({nx, ny, nz});
    auto const layer = [&](mp::u64 x) { return block.subarray({x, 0, 0}, {1, ny, nz}); };
    for (mp::u32 step = 0; step < steps; ++step) {
      auto const& now = fields[step % 2];
      auto const old = now.local(self), next = fields[1 - step % 2].local(self);
      if (!first)
        self.put_notify(now.at(left).strided(layer(nx - 1)), old.strided(layer(1)), from_right);
      if (!last)
        self.put_notify(now.at(right).strided(layer(0)), old.strided(layer(nx - 2)), from_left);
      if (!first) self.wait(now, from_left);
      if (!last) self.wait(now, from_right);
      self.each(own * ny * nz, [&](mp::u64 i) {
        mp::u64 const x = 1 + i % own, y = i / own % ny, z = i / own / ny;
        next[cell(x, y, z, nx)] = smoothed(old, x, y, z, nx);
      });
      self.flush(now);  // the next step overwrites the sent cells
    }
  }
};
// [/kernel]

int main() try {
  mp::World world;
  mp::u64 const width = world.size() * own + 2;  // and a fixed layer at each end
  std::vector<double> field(width * ny * nz);
  for (mp::u64 i = 0; i < field.size(); ++i) field[i] = static_cast<double>(i * 37 % 101);

  Smooth const kernel{{world.window<double>(nx * ny * nz, mp::Tags{2}),
                       world.window<double>(nx * ny * nz, mp::Tags{2})}};
  std::vector<double> block(nx * ny * nz);
  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    for (mp::u64 i = 0; i < block.size(); ++i)
      block[i] = field[cell(rank * own + i % nx, i / nx % ny, i / nx / ny, width)];
    for (auto const& window : kernel.fields) window.write(mp::RankId{rank}, 0, block);
  }
  world.run(kernel);

  auto next = field;
  for (mp::u32 step = 0; step < steps; ++step, field.swap(next))
    for (mp::u64 z = 0; z < nz; ++z)
      for (mp::u64 y = 0; y < ny; ++y)
        for (mp::u64 x = 1; x + 1 < width; ++x)
          next[cell(x, y, z, width)] = smoothed(field, x, y, z, width);
  for (mp::u32 rank = 0; rank < world.size(); ++rank) {
    auto const part = kernel.fields[steps % 2].read(mp::RankId{rank});
    for (mp::u64 i = 0; i < part.size(); ++i) {
      mp::u64 const x = i % nx, y = i / nx % ny, z = i / nx / ny;
      if (x == 0 || x == nx - 1) continue;  // cells of others, one step older
      if (part[i] != field[cell(rank * own + x, y, z, width)]) {
        std::printf("cell (%llu, %llu, %llu) of rank %u is %g\n", x, y, z, rank, part[i]);
        return 1;
      }
    }
  }
  if (world.process() == 0)
    std::printf("%u ranks smoothed a grid of %llu x %llu x %llu cells %u times\n", world.size(),
                width, ny, nz, steps);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
