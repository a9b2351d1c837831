#pragma once
#include <chrono>
#include <deque>
#include <vector>

#include "net/engine.hpp"
#include "world/process_group.hpp"

namespace meshpost::copying {

/// An engine between processes of one node, through memory that both have mapped: a ring of slots
/// for each pair and direction. For messages only.
class Rings : public net::Engine {
 public:
  /// Collective over all processes.
  explicit Rings(ProcessGroup const& group);
  ~Rings() override;
  Rings(Rings const&) = delete;
  Rings& operator=(Rings const&) = delete;

  std::string name() const override { return "shared memory"; }
  std::string address() const override { return {}; }
  void connect(std::vector<std::string> const& /*addresses*/) override {}
  Bytes most() const override;
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override;
  bool poll(net::Events& events) override;
  bool keeps_bytes() const override { return true; }

  // Not there.
  std::string expose(void* memory, Bytes size) override;
  net::RemoteMemory import(u32 peer, std::string const& exposed) override;
  bool write(u32 peer, std::span<char const> source, net::RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override;

 private:
  struct Ring;
  struct Peer {
    Ring* out = nullptr;  // in this process's file; null: not of the node
    Ring* in = nullptr;   // in the peer's
    bool lost = false;
  };

  ProcessGroup const& group_;
  u64 size_ = 0;             // of a process's file
  std::vector<char*> maps_;  // by process
  std::vector<Peer> all_;    // by process
  std::deque<u64> done_;     // cookies to tell
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace meshpost::copying
