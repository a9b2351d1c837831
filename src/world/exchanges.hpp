#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "meshpost/base/types.hpp"

// Process 0's table of exchanges that are under way. Knows no connection.

namespace meshpost {

/// What those who wait in an exchange expect of the others.
enum class Waiters : u8 {
  impatient,  ///< that they come soon: one that doesn't is warned of
  patient     ///< that they may have long work to do first
};

class Exchanges {
 public:
  /// `timeout`: with who has not brought a part, when others have.
  explicit Exchanges(u32 processes, Deadline timeout = Deadline(std::chrono::milliseconds(0)))
      : processes_(processes), timeout_(timeout) {}
  using Key = std::pair<u32, u64>;  // channel, sequence

  struct Outcome {
    std::vector<std::string> parts;  ///< by process
    std::string mismatch;            ///< or why there are none
  };
  /// Takes in one process's part. The outcome, once all have come. `step`: that it has come to
  /// (Processes::come_to).
  std::optional<Outcome> bring(Key key, u32 process, std::string operation, std::string part,
                               Waiters waiters = Waiters::impatient, u32 step = 0);

  struct HeldUp {
    Key key;
    u32 step;  ///< the least of those who wait
    std::vector<u32> missing;
  };
  /// Those that have been under way for a while, each told once.
  std::vector<HeldUp> held_up(Deadline::Clock::time_point now);

  struct Waiting {
    std::string operation;
    std::vector<u32> missing;
  };
  /// Exchanges of impatient ones in which the deadline has passed, each told once. Looks.
  std::vector<Waiting> overdue(Deadline::Clock::time_point now = Deadline::Clock::now());

 private:
  struct One {
    std::vector<std::optional<std::string>> operations{}, parts{};
    u32 count = 0;
    Deadline timeout;
    bool told = false;
    u32 step = 0;
    Deadline::Clock::time_point begun{};
    bool held_up = false;  // and said so
  };
  std::string mismatch_in(One const& one) const;

  u32 processes_;
  Deadline timeout_;
  std::map<Key, One> all_;
};

}  // namespace meshpost
