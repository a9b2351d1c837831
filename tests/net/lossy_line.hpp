#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/engine.hpp"

namespace meshpost::test {

/// An engine between two ends in one process that keeps no order of anything: messages, bytes of
/// writes and what tells of them. It takes some of what it is given only at a later try. What is
/// under way can be looked at, changed, dropped or repeated. One thread.
class LossyLine final : public net::Engine {
 public:
  struct Event {
    enum class What { message, data } what = What::message;
    std::string bytes{};  // of a message, or of a write that is not in place yet
    char* target = nullptr;
    u32 data = 0;
  };
  LossyLine(std::mt19937_64& random, u32 self, bool keeps = false)
      : random_(random), self_(self), keeps_(keeps) {}

  std::string name() const override { return "line"; }
  std::string address() const override { return {}; }
  void connect(std::vector<std::string> const&) override {}
  Bytes most() const override { return Bytes{4096}; }
  bool keeps_bytes() const override { return keeps_; }
  bool send(u32 /*peer*/, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override {
    if (closed || random_() % 3 == 0) return false;
    std::string all(header.begin(), header.end());
    other->arrived.push_back({Event::What::message, all.append(payload.begin(), payload.end())});
    if (cookie != 0) done_.push_back(cookie);
    most_waiting = std::max(most_waiting, other->arrived.size());
    return true;
  }
  /// Some event that has come, in any order; how often it is told `copies` says.
  bool poll(net::Events& events) override {
    for (auto const cookie : std::exchange(done_, {})) events.on_done(cookie);
    if (arrived.empty()) return false;
    if (any_order) std::swap(arrived[random_() % arrived.size()], arrived.back());
    else std::rotate(arrived.begin(), arrived.begin() + 1, arrived.end());
    auto one = std::move(arrived.back());
    arrived.pop_back();
    u32 const times = copies ? copies(one) : 1;
    for (u32 i = 0; i < times; ++i) {
      if (one.what == Event::What::message) {
        events.on_message(1 - self_, one.bytes);
      } else {
        std::memcpy(one.target, one.bytes.data(), one.bytes.size());
        events.on_data(1 - self_, one.data);
      }
    }
    return true;
  }
  std::string expose(void*, Bytes) override { return {}; }
  net::RemoteMemory import(u32, std::string const&) override { return {}; }
  /// `target.base` is the address.
  bool write(u32 /*peer*/, std::span<char const> source, net::RemoteMemory const& target,
             u64 offset, u32 data, u64 cookie) override {
    if (closed || random_() % 3 == 0) return false;
    other->arrived.push_back({Event::What::data, std::string(source.begin(), source.end()),
                              reinterpret_cast<char*>(target.base) + offset, data});
    done_.push_back(cookie);
    return true;
  }

  LossyLine* other = nullptr;
  std::vector<Event> arrived;
  std::function<u32(Event&)> copies;  ///< may change it; 0: it is dropped
  bool closed = false;                ///< takes nothing
  bool any_order = true;
  std::size_t most_waiting = 0;

 private:
  std::mt19937_64& random_;
  u32 self_;
  bool keeps_;
  std::vector<u64> done_;
};

}  // namespace meshpost::test
