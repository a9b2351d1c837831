// Every rank waits before it sends, so nobody ever sends. The run ends with an error that says so.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <string_view>

namespace mp = meshpost;

// [kernel]
struct WaitFirst {
  mp::Window<int> inbox;

  MESHPOST_FN void operator()(mp::Rank& self) const {
    mp::RankId const next{(self.id() + 1) % self.size()};
    mp::RankId const previous{(self.id() + self.size() - 1) % self.size()};
    self.wait(inbox, mp::Tag{7}, 1,
              previous);  // wrong order: the next line would have to come first
    self.notify(inbox, next, mp::Tag{7});
  }
};
// [/kernel]

int main() {
  // [caught]
  mp::WorldOptions options;
  options.devices = "cpu:2";
  options.ranks = 2;
  mp::World world(options);
  try {
    world.run(WaitFirst{world.window<int>(0, mp::Tags{8}, "inbox")});
  } catch (mp::Error const& error) {
    std::printf("%s\n", error.what());
    std::string_view const cycle = "cycle: rank 0 -> rank 3 -> rank 2 -> rank 1 -> rank 0";
    bool const named = std::string_view(error.what()).find(cycle) != std::string_view::npos;
    return error.kind() == mp::Kind::deadlock && named ? 0 : 1;
  }
  // [/caught]
  std::printf("the deadlock was not found\n");
  return 1;
}
