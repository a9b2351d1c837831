#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "meshpost/base/types.hpp"

// Connections with faults that tests choose: TCP by way of a thread of the test, on loopback or
// between hosts.

namespace meshpost::test {

/// Faults and delays of a connection's bytes on their way.
struct Trouble {
  enum class Fault : u32 {
    none,
    flip,   ///< a bit of a byte is changed
    reset,  ///< the connection ends there, both ways, by a reset (RST)
    stall   ///< nothing arrives any more, without any sign
  };
  std::chrono::microseconds delay{};  ///< of each piece, at most
  u64 most_at_once = u64{1} << 16;    ///< bytes of a piece, at most;
  u64 at_first = 0;                   ///< but of each way's first, so many if they are there
  u64 bytes_per_second = 0;           ///< each way; 0: as many as come
  Fault fault = Fault::none;
  u64 at = 0;                   ///< the byte where it happens, of those that go this way:
  bool forth = true;            ///< from the connecting to the accepting side
  std::optional<u32> bit = {};  ///< that `flip` changes, 0 to 7; empty: by chance
  /// If not null: true for a byte of a piece that `flip` leaves as it is.
  bool (*spares)(std::string_view piece, u64 at) = nullptr;
};

class Troubles {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of the `number`th connection to `target`. Called by the thread.
  using Plan = std::function<Trouble(std::string const& target, u32 number)>;

  /// `seed` decides the size and the delay of each piece, and which bit is changed. `host`: the
  /// address, of this host, that the others reach.
  Troubles(u64 seed, Plan plan, std::string host = "127.0.0.1");
  ~Troubles();  ///< ends all connections
  Troubles(Troubles const&) = delete;
  Troubles& operator=(Troubles const&) = delete;

  /// The address that way_to() asks; "host:port".
  std::string const& address() const { return address_; }
  /// Time of the first fault; empty if there was none.
  std::optional<Clock::time_point> fault() const {
    auto const when = fault_.load();
    return when == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(when)));
  }

 private:
  class Thread;
  std::string host_, address_;
  std::atomic<bool> over_{false};
  std::atomic<Clock::rep> fault_{0};
  std::unique_ptr<Thread> work_;
  std::thread thread_;
};

/// The address to connect to instead of `target` (both "host:port"), to get the faults that these
/// Troubles have for it. Empty: they are over.
std::string way_to(std::string const& target, std::string const& troubles);

/// The value of this variable is address() of some Troubles. In a process with it TCP connections
/// go by way of them, also those of libraries. These are connections to loopback; if the Troubles
/// are on another host, those to any other host. For programs with detour.cpp.
inline constexpr char const* detour_variable = "MESHPOST_TEST_DETOUR";

}  // namespace meshpost::test
