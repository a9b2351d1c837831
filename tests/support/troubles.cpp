#include "support/troubles.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <map>
#include <stdexcept>
#include <vector>

#include "meshpost/base/descriptor.hpp"

namespace meshpost::test {
namespace {

using Clock = Troubles::Clock;
constexpr u64 most_held = u64{256} << 10;  // of one way
constexpr auto longest_pause = std::chrono::milliseconds(20);
constexpr auto try_again = std::chrono::milliseconds(1);  // a socket that took nothing

sockaddr_in address_from(std::string const& text) {
  auto const colon = text.rfind(':');
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = inet_addr(text.substr(0, colon).c_str());
  there.sin_port = htons(static_cast<in_port_t>(std::stoul(text.substr(colon + 1))));
  return there;
}

Descriptor listen_anywhere(std::string const& host, std::string& address) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto here = address_from(host + ":0");
  socklen_t size = sizeof here;
  auto* const plain = reinterpret_cast<sockaddr*>(&here);
  if (bind(socket.get(), plain, size) != 0 || listen(socket.get(), 128) != 0 ||
      getsockname(socket.get(), plain, &size) != 0)
    throw std::runtime_error("no listening socket");
  address = host + ":" + std::to_string(ntohs(here.sin_port));
  return socket;
}

Descriptor call(std::string const& address) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto const there = address_from(address);
  if (connect(socket.get(), reinterpret_cast<sockaddr const*>(&there), sizeof there) != 0)
    return {};
  int const yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

// Closed like this, a socket resets its connection.
void make_reset(Descriptor const& socket) {
  linger const none{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

struct Piece {
  Clock::time_point due;
  std::string bytes;
};

struct Way {  // of a connection: one of its two directions
  u64 read = 0;
  std::deque<Piece> pieces;
  Clock::time_point last_due{}, free{};  // free: of the limited bandwidth
  bool ended = false, told = false;      // by who sends; to who receives
  u64 held() const {
    u64 bytes = 0;
    for (auto const& piece : pieces) bytes += piece.bytes.size();
    return bytes;
  }
  bool over() const { return ended && told; }
};

struct Connection {
  Trouble trouble;
  std::array<Descriptor, 2> ends;  // the connecting side, the accepting side
  std::array<Way, 2> ways;         // forth and back
  bool stalled = false;
  bool resets = false;  // once the bytes before it have passed
};

struct Acceptor {  // accepts connections to a target
  std::string target;
  Descriptor listener;
  u32 calls = 0;
};

}  // namespace

class Troubles::Thread {
 public:
  Thread(Troubles& troubles, u64 seed, Plan plan)
      : troubles_(troubles), random_(seed), plan_(std::move(plan)) {
    control_ = listen_anywhere(troubles.host_, troubles.address_);
  }

  void work() {
    while (!troubles_.over_) {
      wait();
      answer();
      for (auto& acceptor : acceptors_) open(acceptor);
      connections_.remove_if([this](Connection& one) { return !one.stalled && !carry(one); });
    }
  }

 private:
  void wait() {
    std::vector<pollfd> polled{{control_.get(), POLLIN, 0}};
    for (auto const& acceptor : acceptors_) polled.push_back({acceptor.listener.get(), POLLIN, 0});
    auto const now = Clock::now();
    auto until = now + longest_pause;
    for (auto const& one : connections_)
      for (u32 way = 0; way < 2 && !one.stalled; ++way) {
        auto const& [pieces, ended] = std::tie(one.ways[way].pieces, one.ways[way].ended);
        if (!ended && one.ways[way].held() < most_held)
          polled.push_back({one.ends[way].get(), POLLIN, 0});
        if (!pieces.empty()) until = std::min(until, std::max(pieces.front().due, now + try_again));
      }
    auto const left = std::chrono::duration_cast<std::chrono::microseconds>(until - now);
    timespec const time{0, std::max<long>(left.count(), 1) * 1000};
    ppoll(polled.data(), polled.size(), &time, nullptr);
  }

  // A thread that asks for a way to a target gets an address.
  void answer() {
    Descriptor asker(accept4(control_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!asker) return;
    char text[100];
    auto const size = recv(asker.get(), text, sizeof text, 0);
    if (size <= 0) return;
    std::string const target(text, static_cast<std::size_t>(size));
    auto& way = ways_[target];
    if (way.empty()) acceptors_.push_back({target, listen_anywhere(troubles_.host_, way), 0});
    (void)!send(asker.get(), way.data(), way.size(), MSG_NOSIGNAL);
  }

  void open(Acceptor& acceptor) {
    Descriptor caller(accept4(acceptor.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!caller) return;
    Connection one{
        plan_(acceptor.target, acceptor.calls++), {std::move(caller), call(acceptor.target)}, {}};
    if (one.ends[1]) connections_.push_back(std::move(one));
    else make_reset(one.ends[0]);  // no process listens there
  }

  // Returns true if the connection goes on.
  bool carry(Connection& one) {
    for (u32 way = 0; way < 2; ++way)
      if (!take(one, way) || !give(one, way)) {
        for (auto const& end : one.ends) make_reset(end);
        return false;
      }
    return !one.ways[0].over() || !one.ways[1].over();
  }

  bool take(Connection& one, u32 number) {
    auto& way = one.ways[number];
    if (way.ended || one.resets || way.held() >= most_held) return true;
    auto const& trouble = one.trouble;
    u64 const most = 1 + random_() % trouble.most_at_once;
    std::string bytes(std::max(most, way.read == 0 ? trouble.at_first : 0), '\0');
    auto const size = recv(one.ends[number].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) way.ended = true;
    bytes.resize(static_cast<std::size_t>(size));
    bool const hit = trouble.fault != Trouble::Fault::none && trouble.forth == (number == 0) &&
                     way.read <= trouble.at && trouble.at < way.read + bytes.size();
    if (hit) strike(one, bytes, trouble.at - way.read);
    way.read += bytes.size();
    auto const now = Clock::now();
    if (trouble.bytes_per_second != 0)
      way.free = std::max(now, way.free) +
                 std::chrono::nanoseconds(bytes.size() * 1'000'000'000 / trouble.bytes_per_second);
    std::chrono::microseconds const delay(
        trouble.delay.count() == 0 ? 0 : random_() % static_cast<u64>(trouble.delay.count() + 1));
    way.last_due = std::max({way.last_due, way.free, now + delay});
    if (!bytes.empty()) way.pieces.push_back({way.last_due, std::move(bytes)});
    return true;
  }

  void strike(Connection& one, std::string& bytes, std::size_t at) {
    switch (one.trouble.fault) {
      case Trouble::Fault::flip:
        if (one.trouble.spares && one.trouble.spares(bytes, at)) return;
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << one.trouble.bit.value_or(random_() % 8));
        break;
      case Trouble::Fault::reset:
        bytes.resize(at);
        one.resets = true;
        break;
      case Trouble::Fault::stall: one.stalled = true; break;
      case Trouble::Fault::none: return;
    }
    Clock::rep none = 0;
    troubles_.fault_.compare_exchange_strong(none, Clock::now().time_since_epoch().count());
  }

  bool give(Connection& one, u32 number) {
    auto& way = one.ways[number];
    auto const& to = one.ends[1 - number];
    while (!way.pieces.empty() && way.pieces.front().due <= Clock::now()) {
      auto& bytes = way.pieces.front().bytes;
      auto const size = send(to.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (size < 0) return false;
      bytes.erase(0, static_cast<std::size_t>(size));
      if (bytes.empty()) way.pieces.pop_front();
    }
    if (one.resets) return !one.ways[0].pieces.empty() || !one.ways[1].pieces.empty();
    if (way.ended && way.pieces.empty() && !std::exchange(way.told, true))
      shutdown(to.get(), SHUT_WR);
    return true;
  }

  Troubles& troubles_;
  std::mt19937_64 random_;
  Plan plan_;
  Descriptor control_;
  std::map<std::string, std::string> ways_;  // by target
  std::list<Acceptor> acceptors_;
  std::list<Connection> connections_;
};

Troubles::Troubles(u64 seed, Plan plan, std::string host)
    : host_(std::move(host)), work_(std::make_unique<Thread>(*this, seed, std::move(plan))) {
  thread_ = std::thread([this] { work_->work(); });
}

Troubles::~Troubles() {
  over_ = true;
  thread_.join();
}

std::string way_to(std::string const& target, std::string const& troubles) {
  auto const asking = call(troubles);
  if (!asking || send(asking.get(), target.data(), target.size(), MSG_NOSIGNAL) < 0) return {};
  char text[100];
  auto const size = recv(asking.get(), text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace meshpost::test
