#pragma once
#include "net/rounds.hpp"
#include "net/wrapper.hpp"

namespace meshpost::net {

/// Another engine, in which its caller's thread can be taken for lost: what is under way in it are
/// rounds, but for the events it tells. A thread that comes back to its caller, or tells an event,
/// after its round was taken stays where it is for ever, as nothing behind it is its own any more.
///
/// Of what the caller has, the engine itself then still reads the sources of what was started, and
/// touches exposed memory: these stay as they are, or at least stay.
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
