#include "world/line.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace meshpost {

Line::Line(Descriptor socket, Tls tls) : socket_(std::move(socket)), tls_(std::move(tls)) {
  tls_.begin(out_);
}

void Line::send(wire::Header const& header, std::string_view bytes) {
  auto const first = bytes.substr(0, Tls::most_together - sizeof header);
  tls_.send(wire::pack_header(header, bytes).append(first), out_);
  tls_.send(bytes.substr(first.size()), out_);
}

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

void Line::finish() {
  tls_.close(out_);
  flush();
  ::shutdown(socket(), SHUT_WR);
}

bool Line::receive() {
  char bytes[65536];
  for (std::size_t taken = 0; taken < most_at_once && !broken_;) {
    auto const room = tls_.is_proven() ? sizeof bytes : Tls::most_before_proof;
    auto const size = ::recv(socket(), bytes, room, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size <= 0) {
      // reset: the other end left bytes unread when it ended
      why_ = size == 0 || errno == ECONNRESET ? "" : std::strerror(errno);
      return false;
    }
    auto& text = cutter_.buffer();
    auto const before = text.size();
    try {
      tls_.receive({bytes, static_cast<std::size_t>(size)}, text, out_);
    } catch (Error const& error) {
      broken_ = error;
    }
    if (text.size() > before) ++heard_;  // before the proof the bytes may be somebody else's
    if (tls_.is_closed()) return false;
    taken += static_cast<std::size_t>(size);
  }
  return !broken_;
}

std::optional<wire::Frame> Line::next() {
  auto frame = cutter_.next();
  if (!frame && broken_) throw Error(*broken_);
  return frame;
}

}  // namespace meshpost
