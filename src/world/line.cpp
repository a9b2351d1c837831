#include "world/line.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace meshpost {

bool Line::flush() {
  while (has_output()) {
    auto const size =
        ::send(socket(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size < 0) {
      why_ = std::strerror(errno);
      return false;
    }
    sent_ += static_cast<std::size_t>(size);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool Line::receive() {
  char bytes[65536];
  for (;;) {
    auto const size = ::recv(socket(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size <= 0) {
      why_ = size == 0 ? "" : std::strerror(errno);
      return false;
    }
    heard_ = Clock::now();
    cutter_.add(bytes, static_cast<std::size_t>(size));
  }
}

}  // namespace meshpost
