#include "rendezvous.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstdlib>

namespace meshpost::launch {

Rendezvous listen_here() {
  auto const failed = [](char const* call) {
    return system_error(fmt::format("listen on 127.0.0.1: {}", call),
                        "is the loopback interface up, and ulimit -n above 10?");
  };
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) throw failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), generic, size) != 0) throw failed("bind");
  if (::listen(listener.get(), 128) != 0) throw failed("listen");
  if (::getsockname(listener.get(), generic, &size) != 0) throw failed("getsockname");
  return {std::move(listener), fmt::format("127.0.0.1:{}", ntohs(address.sin_port))};
}

std::string fresh_secret() {
  std::array<unsigned char, 32> bytes{};
  // getrandom returns so few bytes in one piece or fails.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw system_error("make the job's secret: getrandom", "allow the system call getrandom");
  std::string text;
  for (auto const byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void keep_outer_listener_back() {
  char const* const text = std::getenv("MESHPOST_LISTENER");
  if (text == nullptr) return;
  int number = -1;
  std::from_chars(text, text + std::strlen(text), number);
  int listens = 0;
  socklen_t size = sizeof listens;
  if (number > 2 && ::getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
      listens != 0)
    ::fcntl(number, F_SETFD, FD_CLOEXEC);
}

}  // namespace meshpost::launch
