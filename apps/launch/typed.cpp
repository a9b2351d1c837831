#include "typed.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace meshpost::launch {

void Typed::watch(Poller& poller) {
  if (reads_) poller.watch(0, POLLIN, [this] { read_some(); });
}

void Typed::read_some() {
  std::array<char, 65536> bytes;
  auto const size = ::read(0, bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  reads_ = false;  // until it is taken, or for ever
  give_({bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0});
}

}  // namespace meshpost::launch
