#pragma once
#include "net/rounds.hpp"
#include "net/wrapper.hpp"

namespace meshpost::net {

/// Another engine, whose caller's thread can be given up while it is inside. Each call of the
/// engine is a round; the events that it reports are outside of rounds. If a thread's round was
/// taken, the thread stops for ever when it returns from the engine or reports an event: the
/// objects that it would use then are not its own any more.
///
/// The engine itself may still read the sources of messages and writes that were started, and may
/// still access exposed memory. So this memory must stay allocated.
class Watched final : public Wrapper {
 public:
  Watched(std::unique_ptr<Engine> engine, Rounds& rounds)
      : Wrapper(std::move(engine)), rounds_(rounds) {}

  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override;
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override;
  bool poll(Events& events) override;

 private:
  Rounds& rounds_;
};

}  // namespace meshpost::net
