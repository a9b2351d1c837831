#include "net/watched.hpp"

#include <unistd.h>

namespace meshpost::net {
namespace {

void end(Rounds& rounds) {
  if (!rounds.end())
    for (;;) pause();
}

class Inside {
 public:
  explicit Inside(Rounds& rounds) : rounds_(rounds) { rounds_.begin(); }
  ~Inside() { end(rounds_); }
  Inside(Inside const&) = delete;
  Inside& operator=(Inside const&) = delete;

 private:
  Rounds& rounds_;
};

class Outside {
 public:
  explicit Outside(Rounds& rounds) : rounds_(rounds) { end(rounds_); }
  ~Outside() { rounds_.begin(); }
  Outside(Outside const&) = delete;
  Outside& operator=(Outside const&) = delete;

 private:
  Rounds& rounds_;
};

class Told final : public Events {
 public:
  Told(Rounds& rounds, Events& events) : rounds_(rounds), events_(events) {}
  void on_message(u32 peer, std::span<char const> bytes) override {
    Outside const outside(rounds_);
    events_.on_message(peer, bytes);
  }
  void on_data(u32 peer, u32 data) override {
    Outside const outside(rounds_);
    events_.on_data(peer, data);
  }
  void on_done(u64 cookie) override {
    Outside const outside(rounds_);
    events_.on_done(cookie);
  }
  void on_lost(u32 peer, std::string const& why) override {
    Outside const outside(rounds_);
    events_.on_lost(peer, why);
  }

 private:
  Rounds& rounds_;
  Events& events_;
};

}  // namespace

bool Watched::send(u32 peer, std::span<char const> header, std::span<char const> payload,
                   u64 cookie) {
  Inside const inside(rounds_);
  return Wrapper::send(peer, header, payload, cookie);
}

bool Watched::write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                    u32 data, u64 cookie) {
  Inside const inside(rounds_);
  return Wrapper::write(peer, source, target, offset, data, cookie);
}

bool Watched::poll(Events& events) {
  Inside const inside(rounds_);
  Told told(rounds_, events);
  return Wrapper::poll(told);
}

}  // namespace meshpost::net
