#pragma once
#include <optional>
#include <string>
#include <vector>

#include "poller.hpp"
#include "system.hpp"

namespace meshpost::launch {

/// Finds out which addresses lead from this host to where somebody says `text` (doors.hpp). Hosts
/// have addresses that lead nowhere, or, from another host, to that host itself: a container's
/// bridge has the same address on each.
class Reach {
 public:
  Reach(std::vector<std::string> const& addresses, std::string text);

  void watch(Poller& poller);
  Clock::time_point next() const { return until_; }
  /// All have answered or failed, or it has taken too long.
  bool over() const;
  /// Those that lead there, in the order in which they were given.
  std::vector<std::string> reached() const;

 private:
  struct Try {
    std::string address, heard;
    Fd socket;  // closed: it is over
    bool there = false;
  };
  void begin(Try& one);
  void read_some(Try& one);

  std::vector<Try> tries_;
  std::string text_;
  Clock::time_point until_;
};

/// The addresses of a host's name, as "address:port"; the name may be one, with brackets or
/// without. A port that is empty: none of that family. Takes as long as the resolver does.
std::vector<std::string> resolve(std::string const& host, std::string const& port_4,
                                 std::string const& port_6);

}  // namespace meshpost::launch
