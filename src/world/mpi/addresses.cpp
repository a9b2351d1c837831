#include "world/mpi/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <memory>

namespace meshpost {

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> const all(first, freeifaddrs);
  std::vector<std::string> addresses;
  for (auto const* one = first; one; one = one->ifa_next) {
    bool const outside = (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK);
    if (!outside || !one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    auto const* const address = reinterpret_cast<sockaddr_in const*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) addresses.emplace_back(text);
  }
  return addresses;
}

}  // namespace meshpost
