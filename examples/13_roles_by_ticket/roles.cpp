// Heat flows over a plate. Each device has a piece of it, which all its ranks share. In each step a
// rank draws tickets, and they say what it does: receive, compute and send the border, compute the
// interior, or unpack what has come. One kernel for all steps.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <vector>

namespace mp = meshpost;

constexpr mp::u64 width = 50, rows = 12;  // of a piece, plus a row of each neighbour
constexpr mp::u64 cells = width * (rows + 2);
constexpr mp::u32 steps = 40;

// One new cell of a row. Those at the left and right end do not change. Products with powers of two
// are exact. So the result is the same to the bit, whether a compiler joins a product and a sum or
// not.
MESHPOST_FN inline double heated(double const* now, mp::u64 at) {
  mp::u64 const x = at % width;
  if (x == 0 || x == width - 1) return now[at];
  return now[at] +
         0.125 * (now[at - width] + now[at - 1] - 4 * now[at] + now[at + 1] + now[at + width]);
}

// [kernel]
struct Heat {
  mp::Window<double> plate;  // of a device: two copies, one read and the other written, in turn
  mp::Window<double> inbox;  // rows of its neighbours, in two places that take turns
  mp::RoleWords words;

  static constexpr mp::u32 packers = 3;  // ranks that compute a border row

  MESHPOST_FN void operator()(mp::Rank& self) const {
    mp::Tag const from_above{0}, from_below{1};
    bool const above = self.device() > 0, below = self.device() + 1 < self.device_count();
    mp::u32 const neighbours = (above ? 1 : 0) + (below ? 1 : 0);
    mp::RankId const upper{(self.device() - 1) * self.local_size()},
        lower{(self.device() + 1) * self.local_size()};  // any rank of the device
    mp::RolesByTicket roles(self, words,
                            {.messages = neighbours,
                             .packers = packers,
                             .interior = static_cast<mp::u32>(rows) - neighbours,
                             .unpackers = neighbours});
    for (mp::u32 step = 0; step < steps; ++step) {
      auto const now = plate.local(self).subspan(step % 2 * cells, cells);
      auto const next = plate.local(self).subspan((step + 1) % 2 * cells, cells);
      auto const place = [&](mp::Tag tag) { return (step % 2 * 2 + tag.value) * width; };
      auto const compute = [&](mp::u64 row, mp::u64 from, mp::u64 to) {
        self.each(to - from, [&](mp::u64 i) {
          next[row * width + from + i] = heated(now.data(), row * width + from + i);
        });
      };
      while (auto const task = roles.next()) {
        bool const up = above && task.index == 0;  // message 0 is for the device above, if any
        switch (task.role) {
          case mp::HaloRole::receive:
            if (above) roles.wait(from_above, upper);
            if (below) roles.wait(from_below, lower);
            break;
          case mp::HaloRole::send: {  // a part of a border row; the last one sends the row
            mp::u64 const row = up ? 1 : rows;
            compute(row, task.part * width / packers, (task.part + 1) * width / packers);
            if (!roles.packed(task)) break;
            auto const target = up ? upper : lower;
            auto const tag = up ? from_below : from_above;
            self.put(inbox.at(target, place(tag)), next.subspan(row * width, width));
            roles.notify(target, tag);
            self.flush(inbox);
            break;
          }
          case mp::HaloRole::interior: compute(1 + (above ? 1 : 0) + task.index, 0, width); break;
          case mp::HaloRole::unpack: {
            auto const row = next.subspan(up ? 0 : (rows + 1) * width, width);
            auto const came = inbox.local(self).subspan(place(up ? from_above : from_below), width);
            self.each(width, [&](mp::u64 i) { row[i] = came[i]; });
            break;
          }
          case mp::HaloRole::none: break;
        }
      }
    }
  }
};
// [/kernel]

int main() try {
  mp::World world;
  mp::u32 const devices = world.device_count(), each = world.ranks_per_device();
  std::vector<double> all((devices * rows + 2) * width);  // with a fixed row at each end
  for (mp::u64 i = 0; i < all.size(); ++i) all[i] = static_cast<double>(i * 37 % 101);

  // [windows]
  // All ranks of a device have the same parts of these.
  Heat const kernel{world.window<double>(mp::shared_parts(world, 2 * cells), mp::Tags{0}, "plate"),
                    world.window<double>(mp::shared_parts(world, 4 * width), mp::Tags{0}, "inbox"),
                    mp::role_words(world, 2)};
  // [/windows]
  for (mp::u32 device = 0; device < devices; ++device)
    for (mp::u64 copy = 0; copy < 2; ++copy)  // both have the fixed rows at the ends
      kernel.plate.write(mp::RankId{device * each}, copy * cells,
                         std::span(all).subspan(device * rows * width, cells));
  world.run(kernel);

  auto next = all;
  for (mp::u32 step = 0; step < steps; ++step, all.swap(next))
    for (mp::u64 i = width; i < all.size() - width; ++i) next[i] = heated(all.data(), i);
  for (mp::u32 device = 0; device < devices; ++device) {
    auto const piece = kernel.plate.read(mp::RankId{device * each});
    for (mp::u64 i = width; i < cells - width; ++i)
      if (piece[steps % 2 * cells + i] != all[device * rows * width + i]) {
        std::printf("cell %llu of device %u is %g, not %g\n", i, device,
                    piece[steps % 2 * cells + i], all[device * rows * width + i]);
        return 1;
      }
  }
  if (world.process() == 0)
    std::printf("%u ranks on %u devices heated %llu x %llu cells %u times\n", world.size(), devices,
                width, devices * rows, steps);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
