#pragma once
#include <string>

#include "meshpost/base/types.hpp"

namespace meshpost::net::ofi {

/// Finds out if somebody listens at a TCP address. Nothing blocks.
class Probe {
 public:
  Probe() = default;
  ~Probe() { close(); }
  Probe(Probe const&) = delete;
  Probe& operator=(Probe const&) = delete;
  Probe(Probe&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  Probe& operator=(Probe&&) = delete;

  /// `native`: a sockaddr. Call it again and again. Returns why nobody listens, as soon as that is
  /// known.
  std::string ask(std::string const& native);
  void close();

 private:
  int socket_ = -1;
};

}  // namespace meshpost::net::ofi
