#include "world/line.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace meshpost {

bool Line::flush() {
  while (has_output()) {
    auto const size =
        ::send(socket(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (sent_ > out_.size() / 2) out_.erase(0, std::exchange(sent_, 0));
      return true;
    }
    if (size < 0) {
      why_ = std::strerror(errno);
      out_.clear();
      sent_ = 0;
      return false;
    }
    sent_ += static_cast<std::size_t>(size);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

void Line::finish() { ::shutdown(socket(), SHUT_WR); }

bool Line::receive() {
  char bytes[65536];
  for (std::size_t taken = 0; taken < most_at_once;) {
    auto const size = ::recv(socket(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size <= 0) {
      // reset: what ended left something unread
      why_ = size == 0 || errno == ECONNRESET ? "" : std::strerror(errno);
      return false;
    }
    ++heard_;
    cutter_.add(bytes, static_cast<std::size_t>(size));
    taken += static_cast<std::size_t>(size);
  }
  return true;
}

}  // namespace meshpost
