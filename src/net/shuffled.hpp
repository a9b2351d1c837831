#pragma once
#include <map>
#include <random>

#include "net/engine.hpp"

namespace meshpost::net {

/// Another engine, whose events come late and in another order: each is kept for a random number of
/// polls, up to `most_polls`. The seed decides. What a fabric without any order may do.
class Shuffled final : public Engine {
 public:
  Shuffled(std::unique_ptr<Engine> engine, u64 seed, u32 most_polls = 64);
  ~Shuffled() override;
  Shuffled(Shuffled const&) = delete;
  Shuffled& operator=(Shuffled const&) = delete;

  std::string name() const override;
  std::string address() const override { return engine_->address(); }
  void connect(std::vector<std::string> const& all) override { engine_->connect(all); }
  Bytes most() const override { return engine_->most(); }
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override {
    return engine_->send(peer, header, payload, cookie);
  }
  std::string expose(void* memory, Bytes size) override { return engine_->expose(memory, size); }
  RemoteMemory import(u32 peer, std::string const& exposed) override {
    return engine_->import(peer, exposed);
  }
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override {
    return engine_->write(peer, source, target, offset, data, cookie);
  }
  /// True while events are kept.
  bool poll(Events& events) override;

 private:
  class Keeper;
  using Tell = std::function<void(Events&)>;

  std::unique_ptr<Engine> engine_;
  std::mt19937_64 random_;
  u32 most_polls_;
  u64 polls_ = 0;
  std::multimap<u64, Tell> kept_;  // by the poll that tells it
};

}  // namespace meshpost::net
