#include "link.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace meshpost::launch {

void Link::watch_out(Poller& poller) {
  if (pending()) poller.watch(out_.fd(), POLLOUT, [this] { out_.write_some(); });
}

bool Link::read_some() {
  std::array<char, 65536> bytes;
  auto const size = ::read(in_, bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (size <= 0) return false;
  cutter_.add({bytes.data(), static_cast<std::size_t>(size)});
  received_ += static_cast<std::size_t>(size);
  heard_ = Clock::now();
  return true;
}

std::optional<Frame> Link::next() {
  auto frame = cutter_.next();
  for (; frame && frame->say == Say::alive; frame = cutter_.next())
    silence_ = std::chrono::milliseconds(std::max(frame->number, 100));
  return frame;
}

void Link::agree_on(std::chrono::milliseconds silence) {
  silence_ = silence;
  said_ -= silence;
  say_alive();
}

void Link::say_alive() {
  if (Clock::now() < next_sign()) return;
  send({Say::alive, 0, static_cast<i32>(silence_.count()), {}});
  said_ = Clock::now();
}

}  // namespace meshpost::launch
