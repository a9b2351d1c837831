#pragma once
#include <string>
#include <vector>

#include "poller.hpp"
#include "system.hpp"

namespace meshpost::launch {

/// Sockets on all interfaces of process 0's host, one of which process 0 will accept the others on.
/// Until then whoever connects is told a text, by which it knows that it has come here.
class Doors {
 public:
  /// \throws Error(bad_environment) where `port` can't be had; 0: any that is free
  Doors(int port, std::string text);

  void watch(Poller& poller);
  /// Where they listen: "host:port" for each address of `interface`, of all if it is empty, those
  /// for use within the host last.
  std::vector<std::string> addresses(std::string const& interface) const;
  /// The port of either family; 0: none.
  std::string port(bool version_6) const;
  /// The socket for such an address; the others are closed.
  Fd take(std::string const& address);

 private:
  void tell(Fd const& door) const;

  Fd version_4_, version_6_;
  std::string text_;
};

/// "host:port", with brackets where they are needed.
std::string with_port(std::string const& host, std::string const& port);

}  // namespace meshpost::launch
