#pragma once
#include <chrono>
#include <random>

#include "net/wrapper.hpp"

namespace meshpost::net {

/// Another engine with one fault, once: for tests of faults that must be detected. The fault hits a
/// message or the notice of a write when it arrives, or the bytes of a write when it is started.
/// The seed decides which of the first `most_before` it hits, and where in it.
class Faulty final : public Wrapper {
 public:
  enum class Fault : u32 {
    flip,       ///< a bit is changed
    truncate,   ///< its end is missing
    duplicate,  ///< it comes twice
    drop,       ///< it does not come
    lose,       ///< it and all that follows from that peer don't come; the peer is reported lost
    hang        ///< poll() does not return for `hangs`
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
  // A call that does not return is blocked by a killed process, as those of libfabric's shm are.
  bool outlives_peers() const override {
    return fault_ != Fault::hang && Wrapper::outlives_peers();
  }
  // The changed bytes that tests must detect are in the host's memory.
  bool keeps_bytes() const override { return false; }
  bool reaches(std::string_view /*kind*/) const override { return false; }

 private:
  class Filter;

  static void hang();
  bool changes_bytes() const { return fault_ == Fault::flip || fault_ == Fault::truncate; }

  Fault fault_;
  std::mt19937_64 random_;
  u64 before_;              // how many more pass unchanged before the fault
  std::vector<bool> lost_;  // by peer
  std::vector<u64> done_;   // cookies of operations to a lost peer
  std::string changed_;     // bytes that are written instead of the right ones
};

/// The fault with a name, such as "flip".
/// \throws Error(bad_environment)
Faulty::Fault fault_from(std::string const& name);

}  // namespace meshpost::net
