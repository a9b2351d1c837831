#pragma once
#include <chrono>
#include <random>

#include "net/wrapper.hpp"

namespace meshpost::net {

/// Another engine in which one thing goes wrong, once, with a message or what tells of a write when
/// it arrives, or with the bytes of a write when it is started: for tests of what must be found
/// out. The seed decides with which of the first `most_before`, and where in it.
class Faulty final : public Wrapper {
 public:
  enum class Fault : u32 {
    flip,       ///< a bit is changed
    truncate,   ///< its end is missing
    duplicate,  ///< it comes twice
    drop,       ///< it does not come
    lose,       ///< it and all that would come from that peer do not; the peer is told as lost
    hang        ///< poll() does not come back for `hangs`
  };
  static constexpr u32 most_before = 200;
  static constexpr auto hangs = std::chrono::seconds(3);

  Faulty(std::unique_ptr<Engine> engine, Fault fault, u64 seed);

  std::string name() const override;
  void connect(std::vector<std::string> const& all) override;
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override;
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override;
  bool poll(Events& events) override;
  // One that hangs is to be given up as libfabric's shm is.
  bool outlives_peers() const override {
    return fault_ != Fault::hang && Wrapper::outlives_peers();
  }
  // What is to be found out are changed bytes of the host's memory.
  bool keeps_bytes() const override { return false; }
  bool reaches(std::string_view /*kind*/) const override { return false; }

 private:
  class Filter;

  static void hang();
  bool changes_bytes() const { return fault_ == Fault::flip || fault_ == Fault::truncate; }

  Fault fault_;
  std::mt19937_64 random_;
  u64 before_;              // of what the fault can happen to, those that still come as they are
  std::vector<bool> lost_;  // by peer
  std::vector<u64> done_;   // cookies of what was started to one that is lost
  std::string changed_;     // bytes that are written instead of others
};

/// By its name, such as "flip". \throws Error(bad_environment)
Faulty::Fault fault_from(std::string const& name);

}  // namespace meshpost::net
