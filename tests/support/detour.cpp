// In a program with this file, connections to loopback go by way of the test's Troubles (see
// detour_variable), those of libraries too: its connect() takes the place of the C library's.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "support/troubles.hpp"

namespace {

// While this thread asks for a way, it connects as it says.
thread_local bool asking = false;

in_port_t way_for(in_port_t port, std::string const& troubles) {
  static std::mutex mutex;
  static std::map<in_port_t, in_port_t> ways;
  std::scoped_lock const lock(mutex);
  auto& way = ways[port];
  if (way != 0) return way;
  asking = true;
  auto const target = "127.0.0.1:" + std::to_string(ntohs(port));
  auto const address = meshpost::test::way_to(target, troubles);
  asking = false;
  way = address.empty()
            ? port
            : htons(static_cast<in_port_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  return way;
}

}  // namespace

extern "C" int connect(int socket, sockaddr const* address, socklen_t size) {
  static auto const real = reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  char const* const troubles = std::getenv(meshpost::test::detour_variable);
  int type = 0;
  socklen_t type_size = sizeof type;
  getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_size);
  if (!troubles || asking || !address || address->sa_family != AF_INET || type != SOCK_STREAM)
    return real(socket, address, size);
  auto there = *reinterpret_cast<sockaddr_in const*>(address);
  if (there.sin_addr.s_addr == htonl(INADDR_LOOPBACK))
    there.sin_port = way_for(there.sin_port, troubles);
  return real(socket, reinterpret_cast<sockaddr const*>(&there), sizeof there);
}
