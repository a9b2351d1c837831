#include "doors.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

namespace meshpost::launch {
namespace {

Fd listen_on(int family, int port) {
  Fd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return {};
  int const yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 version_6{};
  version_6.sin6_family = AF_INET6;
  version_6.sin6_port = htons(static_cast<in_port_t>(port));
  sockaddr_in version_4{};
  version_4.sin_family = AF_INET;
  version_4.sin_port = version_6.sin6_port;
  bool const six = family == AF_INET6;
  if (six) ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  auto const* const address =
      six ? reinterpret_cast<sockaddr*>(&version_6) : reinterpret_cast<sockaddr*>(&version_4);
  if (::bind(listener.get(), address, six ? sizeof version_6 : sizeof version_4) != 0 ||
      ::listen(listener.get(), 128) != 0)
    return {};
  return listener;
}

std::string port_of(Fd const& listener) {
  sockaddr_in6 bound{};  // its port lies where sockaddr_in's does
  socklen_t size = sizeof bound;
  if (!listener) return {};
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return std::to_string(ntohs(bound.sin6_port));
}

struct Own {
  std::string address, interface;
  bool loopback, version_6;
};

std::vector<Own> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> const list(first, ::freeifaddrs);
  std::vector<Own> all;
  for (auto const* one = first; one != nullptr; one = one->ifa_next) {
    int const family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    if ((one->ifa_flags & IFF_UP) == 0 || (family != AF_INET && family != AF_INET6)) continue;
    auto const* const six = reinterpret_cast<sockaddr_in6 const*>(one->ifa_addr);
    auto const* const four = reinterpret_cast<sockaddr_in const*>(one->ifa_addr);
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) continue;  // need a scope
    char text[INET6_ADDRSTRLEN] = {};
    void const* const bytes = family == AF_INET6 ? static_cast<void const*>(&six->sin6_addr)
                                                 : static_cast<void const*>(&four->sin_addr);
    if (::inet_ntop(family, bytes, text, sizeof text) != nullptr)
      all.push_back(
          {text, one->ifa_name, (one->ifa_flags & IFF_LOOPBACK) != 0, family == AF_INET6});
  }
  std::ranges::stable_sort(all, {},
                           [](Own const& one) { return one.loopback * 2 + one.version_6; });
  return all;
}

}  // namespace

Doors::Doors(int port, std::string text)
    : version_4_(listen_on(AF_INET, port)), version_6_(), text_(std::move(text)) {
  int const error = errno;
  version_6_ = listen_on(AF_INET6, port);  // there need not be any
  if (version_4_ || version_6_) return;
  errno = error;
  throw system_error(port == 0 ? "listen for the other processes"
                               : fmt::format("listen at port {} for the other processes", port),
                     errno == EADDRINUSE
                         ? "end what has this port there, or name another one with --rendezvous"
                         : "name a port from 1024 to 65535 with --rendezvous, or none");
}

void Doors::watch(Poller& poller) {
  for (auto* const door : {&version_4_, &version_6_})
    if (*door) poller.watch(door->get(), POLLIN, [this, door] { tell(*door); });
}

void Doors::tell(Fd const& door) const {
  Fd const caller(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (caller && ::send(caller.get(), text_.data(), text_.size(), MSG_NOSIGNAL) < 0) return;
}

std::vector<std::string> Doors::addresses(std::string const& interface) const {
  std::vector<std::string> all;
  for (auto const& one : own_addresses())
    if ((interface.empty() || one.interface == interface) && !port(one.version_6).empty())
      all.push_back(with_port(one.address, port(one.version_6)));
  return all;
}

std::string Doors::port(bool version_6) const {
  return port_of(version_6 ? version_6_ : version_4_);
}

Fd Doors::take(std::string const& address) {
  auto door = std::move(address.starts_with('[') ? version_6_ : version_4_);
  ::fcntl(door.get(), F_SETFL, 0);  // waiting, as sockets are
  return door;
}

std::string with_port(std::string const& host, std::string const& port) {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

}  // namespace meshpost::launch
