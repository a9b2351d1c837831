#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// Process 0's table of exchanges that are under way. Knows no connection.

namespace meshpost {

class Exchanges {
 public:
  explicit Exchanges(u32 processes) : processes_(processes) {}
  using Key = std::pair<u32, u64>;  // channel, sequence

  struct Outcome {
    std::vector<std::string> parts;  ///< by process
    std::string mismatch;            ///< or why there are none
  };
  /// Takes in one process's part. The outcome, once all have come.
  std::optional<Outcome> bring(Key key, u32 process, std::string operation, std::string part);

  struct Waiting {
    std::string operation;
    std::vector<u32> missing;
  };
  /// Exchanges that somebody has waited in since `since`, each told once.
  std::vector<Waiting> waiting_since(i64 since_ns);

 private:
  struct One {
    std::vector<std::optional<std::string>> operations, parts;
    u32 count = 0;
    i64 begun_ns = 0;
    bool told = false;
  };
  std::string mismatch_in(One const& one) const;

  u32 processes_;
  std::map<Key, One> all_;
};

}  // namespace meshpost
