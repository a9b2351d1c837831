#include "world/join_engine.hpp"

namespace meshpost {

std::unique_ptr<net::Engine> join_engine(ProcessGroup const& group, std::string const& operation,
                                         std::string const& engine, net::Gpus gpus,
                                         std::function<bool(u32)> const& talks_to) {
  std::unique_ptr<net::Engine> made;
  std::string address;
  group.together(operation, [&] {
    made = net::make_engine(engine, group.processes().own_address(), gpus);
    address = made->address();
  });
  auto addresses = group.exchange(operation, address);
  for (u32 process = 0; process < group.count(); ++process)
    if (!talks_to(process)) addresses[process].clear();
  group.together(operation, [&] { made->connect(addresses); });
  return made;
}

}  // namespace meshpost
