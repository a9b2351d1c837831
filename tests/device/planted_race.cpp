// A program with a race: rank 0 notifies before it stores. Under TSan it must fail. Otherwise the
// annotations of fibers hide races from TSan. Both ranks share a worker, because only there could
// the annotations hide races.
#include <meshpost/meshpost.hpp>

using namespace meshpost;

struct NotifiesTooEarly {
  Window<int> window;
  void operator()(Rank& self) const {
    if (self.id() == 0) {
      self.wait(window,
                Tag{1});  // rank 1 has begun: a fiber's first entry is ordered with its worker
      self.notify(window, RankId{1}, Tag{0});
      *neighbours(self) = 42;     // after, not before
      self.wait(window, Tag{1});  // its end is ordered, too
    } else {
      self.notify(window, RankId{0}, Tag{1});
      self.wait(window, Tag{0});
      sum = sum + window.local(self)[0];
      self.notify(window, RankId{0}, Tag{1});
    }
  }
  int* neighbours(Rank& self) const {
    return window.local(self).data() + window.info().pitch / sizeof(int);
  }
  static inline int volatile sum = 0;
};

int main() {
  WorldOptions options;
  options.devices = "cpu:1";
  options.ranks = 2;
  options.workers = 1;
  World world(options);
  auto const window = world.window<int>(1);
  for (int i = 0; i < 20; ++i) world.run(NotifiesTooEarly{window});
}
