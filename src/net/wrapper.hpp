#pragma once
#include "net/engine.hpp"

namespace meshpost::net {

/// Passes all calls to another engine. Derived classes change some of them.
class Wrapper : public Engine {
 public:
  explicit Wrapper(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::string name() const override { return engine_->name(); }
  std::string address() const override { return engine_->address(); }
  void connect(std::vector<std::string> const& all) override { engine_->connect(all); }
  Bytes most() const override { return engine_->most(); }
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override {
    return engine_->send(peer, header, payload, cookie);
  }
  std::string expose(void* memory, Bytes size) override { return engine_->expose(memory, size); }
  bool reaches(std::string_view kind) const override { return engine_->reaches(kind); }
  std::string expose_device(void* memory, Bytes size, std::string_view kind, u32 index) override {
    return engine_->expose_device(memory, size, kind, index);
  }
  RemoteMemory import(u32 peer, std::string const& exposed) override {
    return engine_->import(peer, exposed);
  }
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override {
    return engine_->write(peer, source, target, offset, data, cookie);
  }
  bool poll(Events& events) override { return engine_->poll(events); }
  bool keeps_bytes() const override { return engine_->keeps_bytes(); }
  bool outlives_peers() const override { return engine_->outlives_peers(); }
  void abandon() noexcept override { engine_->abandon(); }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace meshpost::net
