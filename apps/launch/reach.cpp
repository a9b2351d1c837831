#include "reach.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "doors.hpp"

namespace meshpost::launch {
namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::chrono::milliseconds after_the_first{500};  // that leads there, for the others

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses look_up(char const* host, char const* port, int family, int flags) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, port, &hints, &found) != 0) found = nullptr;
  return {found, ::freeaddrinfo};
}

std::string without_brackets(std::string host) {
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  return host;
}

}  // namespace

Reach::Reach(std::vector<std::string> const& addresses, std::string text)
    : text_(std::move(text)), until_(Clock::now() + patience) {
  for (auto const& address : addresses) {
    tries_.push_back({address, {}, {}, false});
    begin(tries_.back());
  }
}

void Reach::begin(Try& one) {
  auto const colon = one.address.rfind(':');
  auto const host = without_brackets(one.address.substr(0, colon));
  auto const found =
      look_up(host.c_str(), one.address.c_str() + colon + 1, AF_UNSPEC, AI_NUMERICHOST);
  if (!found) return;
  one.socket = Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (one.socket && ::connect(one.socket.get(), found->ai_addr, found->ai_addrlen) != 0 &&
      errno != EINPROGRESS)
    one.socket.close();
}

void Reach::watch(Poller& poller) {
  for (auto& one : tries_)
    if (one.socket) poller.watch(one.socket.get(), POLLIN, [this, &one] { read_some(one); });
}

// The end of a connection, and that there is none, are read as well.
void Reach::read_some(Try& one) {
  std::array<char, 256> bytes;
  auto const size = ::read(one.socket.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size > 0) one.heard.append(bytes.data(), static_cast<std::size_t>(size));
  if (size > 0 && one.heard.size() < text_.size()) return;
  one.there = one.heard == text_;
  one.socket.close();
  if (one.there) until_ = std::min(until_, Clock::now() + after_the_first);
}

bool Reach::over() const {
  return Clock::now() >= until_ || std::ranges::none_of(tries_, [](auto const& one) {
           return static_cast<bool>(one.socket);
         });
}

std::vector<std::string> Reach::reached() const {
  std::vector<std::string> all;
  for (auto const& one : tries_)
    if (one.there) all.push_back(one.address);
  return all;
}

std::vector<std::string> resolve(std::string const& host, std::string const& port_4,
                                 std::string const& port_6) {
  std::vector<std::string> all;
  for (bool const six : {false, true}) {
    auto const& port = six ? port_6 : port_4;
    auto const found = port.empty() ? Addresses(nullptr, ::freeaddrinfo)
                                    : look_up(without_brackets(host).c_str(), port.c_str(),
                                              six ? AF_INET6 : AF_INET, 0);
    for (auto const* one = found.get(); one != nullptr; one = one->ai_next) {
      char text[NI_MAXHOST] = {};
      if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0,
                        NI_NUMERICHOST) == 0)
        all.push_back(with_port(text, port));
    }
  }
  return all;
}

}  // namespace meshpost::launch
