// In a program with this file, connections go by way of the test's Troubles (see detour_variable).
// Its connect() replaces that of the C library, so this includes connections of libraries.
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

// While this thread asks for a way, its own connections are direct.
thread_local bool asking = false;

std::string text_of(sockaddr_in const& address) {
  char host[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
  return host + (':' + std::to_string(ntohs(address.sin_port)));
}

sockaddr_in way_for(sockaddr_in target, std::string const& troubles) {
  static std::mutex mutex;
  static std::map<std::string, sockaddr_in> ways;
  std::scoped_lock const lock(mutex);
  auto const [way, is_new] = ways.try_emplace(text_of(target), target);
  if (!is_new) return way->second;
  asking = true;
  auto const address = meshpost::test::way_to(way->first, troubles);
  asking = false;
  if (auto const colon = address.rfind(':'); colon != std::string::npos) {
    way->second.sin_addr.s_addr = inet_addr(address.substr(0, colon).c_str());
    way->second.sin_port = htons(static_cast<in_port_t>(std::stoul(address.substr(colon + 1))));
  }
  return way->second;
}

bool is_loopback(in_addr_t address) { return ntohl(address) >> 24 == 127; }

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
  std::string const by = troubles;
  if (is_loopback(there.sin_addr.s_addr) ==
      is_loopback(inet_addr(by.substr(0, by.rfind(':')).c_str())))
    there = way_for(there, by);
  return real(socket, reinterpret_cast<sockaddr const*>(&there), sizeof there);
}
