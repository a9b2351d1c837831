#pragma once
// Several engines of one process that know each other.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/engine.hpp"

namespace meshpost::net::test {

struct Recorder : Events {
  std::vector<std::pair<u32, std::string>> messages;
  std::vector<std::pair<u32, u32>> data;
  std::vector<u64> done;
  std::vector<std::pair<u32, std::string>> lost;

  void on_message(u32 peer, std::span<char const> bytes) override {
    messages.emplace_back(peer, std::string(bytes.begin(), bytes.end()));
  }
  void on_data(u32 peer, u32 value) override { data.emplace_back(peer, value); }
  void on_done(u64 cookie) override { done.push_back(cookie); }
  void on_lost(u32 peer, std::string const& why) override { lost.emplace_back(peer, why); }
};

/// An engine and its name in a test's name.
struct Variant {
  char const* name;
  std::function<std::unique_ptr<Engine>()> make;
  u64 operations = 5'000;  ///< of each engine, in the longest test
  u64 each = 500;          ///< messages to each other thread, and a fifth as many writes
};
inline void PrintTo(Variant const& variant, std::ostream* out) { *out << variant.name; }

/// The engines of this program. Each is tested with all claims that hold for every engine.
std::vector<Variant> variants();
inline auto name_of(testing::TestParamInfo<Variant> const& info) {
  return std::string(info.param.name);
}

struct Group {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<Recorder> seen;

  Group(u32 count, Variant const& variant) : seen(count) {
    for (u32 i = 0; i < count; ++i) engines.push_back(variant.make());
    for (u32 i = 0; i < count; ++i) {
      std::vector<std::string> addresses;
      for (u32 j = 0; j < count; ++j) addresses.push_back(i == j ? "" : engines[j]->address());
      engines[i]->connect(addresses);
    }
  }
  void poll() {
    for (u32 i = 0; i < engines.size(); ++i) engines[i]->poll(seen[i]);
  }
  /// Polls until it holds. Returns true if it did within 30 s.
  template <class Holds>
  bool until(Holds const& holds) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      poll();
    }
    return true;
  }
  template <class Start>
  bool retry(Start const& start) {
    return until([&] { return start(); });
  }
};

}  // namespace meshpost::net::test
