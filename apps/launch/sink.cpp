#include "sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace meshpost::launch {
namespace {

constexpr std::size_t piece = 4096;  // PIPE_BUF: what a pipe takes in one once poll() says so

bool takes_more(int fd) {
  pollfd one{fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

void Sink::write_some() {
  while (failure_ == 0 && pending() && takes_more(fd_)) {
    auto const size = std::min(piece, queue_.size() - written_);
    auto const done = ::write(fd_, queue_.data() + written_, size);
    if (done >= 0) written_ += static_cast<std::size_t>(done);
    else if (errno == EAGAIN) return;
    else if (errno != EINTR) failure_ = errno;
  }
  if (failure_ != 0 || !pending()) {
    discard();
  } else if (written_ > (std::size_t{1} << 20)) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

void Sink::discard() {
  queue_.clear();
  written_ = 0;
}

}  // namespace meshpost::launch
