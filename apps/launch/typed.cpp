#include "typed.hpp"

#include <array>

namespace meshpost::launch {

void Typed::watch(Poller& poller) {
  if (!input_) return;
  if (held_.empty()) poller.watch(0, POLLIN, [this] { read_some(); });
  else poller.watch(input_.get(), POLLOUT, [this] { write_some(); });
}

void Typed::read_some() {
  std::array<char, 4096> bytes;
  auto const size = ::read(0, bytes.data(), bytes.size());
  if (size > 0) held_.assign(bytes.data(), static_cast<std::size_t>(size));
  else if (size == 0 || (errno != EINTR && errno != EAGAIN)) input_.close();
}

void Typed::write_some() {
  auto const size = ::write(input_.get(), held_.data(), held_.size());
  if (size > 0) held_.erase(0, static_cast<std::size_t>(size));
  else if (errno != EINTR && errno != EAGAIN) input_.close();
}

}  // namespace meshpost::launch
