#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/errors.hpp"
#include "world/tls.hpp"

// Both ends of connections by TLS. Strings connect them.

namespace meshpost::test {

using End = Tls::End;

/// One end, the text that the other one has sent to it, and its bytes that wait to go there.
struct Side {
  Tls tls;
  std::string text = {}, out = {};

  Side(Tls::Context const& context, End end) : tls(context, end) { tls.begin(out); }
  void take(std::string_view bytes) { tls.receive(bytes, text, out); }
  std::string give() { return std::exchange(out, {}); }
  void say(std::string_view words) { tls.send(words, out); }
};

struct Sides {
  Side caller, acceptor;

  explicit Sides(Tls::Context const& context)
      : caller(context, End::caller), acceptor(context, End::acceptor) {}
  /// Both ends prove themselves. Returns the bytes that crossed.
  std::vector<std::string> greet() {
    std::vector<std::string> said{caller.give()};
    acceptor.take(said[0]);
    said.push_back(acceptor.give());
    caller.take(said[1]);
    said.push_back(caller.give());
    acceptor.take(said[2]);
    EXPECT_TRUE(caller.tls.is_proven() && acceptor.tls.is_proven());
    return said;
  }
};

class TlsTest : public testing::Test {
 protected:
  u64 const seed_ = std::random_device{}();
  testing::ScopedTrace const trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937_64 random_{seed_};
  Tls::Context const context_{Secret(random_bytes())};
  Sides sides_{context_};
  Side& caller_ = sides_.caller;
  Side& acceptor_ = sides_.acceptor;

  u64 below(u64 limit) { return random_() % limit; }
  std::string bytes(u64 size) {
    std::string some(size, '\0');
    for (char& c : some) c = static_cast<char>(random_());
    return some;
  }
};

inline void flip(std::string& stream, std::size_t bit) {
  stream[bit / 8] = static_cast<char>(stream[bit / 8] ^ 1 << bit % 8);
}

inline bool is_garbage_or_other_secret(Error const& error) {
  return error.kind() == Kind::bad_argument || error.cause() == Tls::other_secret;
}

}  // namespace meshpost::test
