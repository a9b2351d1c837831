#include "rma/via/direct/access.hpp"
#include "rma/via/proxy/command_queue.hpp"

namespace meshpost::detail {

std::unique_ptr<Access> make_access(Device& device) {
  if (device.in_host_memory()) return std::make_unique<HostAccess>();
  return std::make_unique<CommandQueueAccess>(device);
}

}  // namespace meshpost::detail
