#include "net/ofi/probe.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace meshpost::net::ofi {

std::string Probe::ask(std::string const& native) {
  auto const* const address = reinterpret_cast<sockaddr const*>(native.data());
  int error = 0;
  if (socket_ < 0) {
    socket_ = ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return {};
    if (::connect(socket_, address, static_cast<socklen_t>(native.size())) != 0) error = errno;
    if (error == EINPROGRESS) return {};
  } else {
    pollfd state{socket_, POLLOUT, 0};
    if (::poll(&state, 1, 0) == 0) return {};
    socklen_t size = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  close();
  return error == 0 ? "" : std::generic_category().message(error);
}

void Probe::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace meshpost::net::ofi
