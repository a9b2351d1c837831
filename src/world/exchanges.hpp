#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "meshpost/base/types.hpp"

// Process 0's table of exchanges in progress. It does not use connections.

namespace meshpost {

/// The waiting processes of an exchange expect this of the others.
enum class Waiters : u8 {
  impatient,  ///< they come soon: a warning names those that don't
  patient     ///< they may have long work to do first
};

class Exchanges {
 public:
  /// `timeout`: how long to wait for missing parts after the first one has come.
  explicit Exchanges(u32 processes, Deadline timeout = Deadline(std::chrono::milliseconds(0)))
      : processes_(processes), timeout_(timeout) {}
  using Key = std::pair<u32, u64>;  // channel, sequence

  struct Outcome {
    std::vector<std::string> parts;  ///< by process
    std::string mismatch;            ///< or why there are none
  };
  /// Takes in one process's part. Returns the outcome when all parts have come. `step`: the one
  /// that the process has reached (Processes::come_to).
  std::optional<Outcome> bring(Key key, u32 process, std::string operation, std::string part,
                               Waiters waiters = Waiters::impatient, u32 step = 0);

  struct HeldUp {
    Key key;
    u32 step;  ///< the lowest of the waiting processes
    std::vector<u32> missing;
  };
  /// Exchanges that have been in progress for a while. Each is returned once.
  std::vector<HeldUp> held_up(Deadline::Clock::time_point now);

  struct Waiting {
    std::string operation;
    std::vector<u32> missing;
  };
  /// Impatient exchanges whose deadline has passed. Each is returned once. Each call counts as a
  /// look of their Deadline.
  std::vector<Waiting> overdue(Deadline::Clock::time_point now = Deadline::Clock::now());

 private:
  struct One {
    std::vector<std::optional<std::string>> operations{}, parts{};
    u32 count = 0;
    Deadline timeout;
    bool told = false;
    u32 step = 0;
    Deadline::Clock::time_point begun{};
    bool held_up = false;  // and was returned by held_up()
  };
  std::string mismatch_in(One const& one) const;

  u32 processes_;
  Deadline timeout_;
  std::map<Key, One> all_;
};

}  // namespace meshpost
