#pragma once
#include <functional>
#include <map>
#include <random>

#include "net/wrapper.hpp"

namespace meshpost::net {

/// Another engine, whose events come late and in another order, as from a fabric that keeps no
/// order. Each is kept for a random number of polls, up to `most_polls`. The seed decides.
class Shuffled final : public Wrapper {
 public:
  Shuffled(std::unique_ptr<Engine> engine, u64 seed, u32 most_polls = 64);
  ~Shuffled() override;
  Shuffled(Shuffled const&) = delete;
  Shuffled& operator=(Shuffled const&) = delete;

  std::string name() const override;
  /// True while events are kept.
  bool poll(Events& events) override;

 private:
  class Keeper;
  using Tell = std::function<void(Events&)>;

  std::mt19937_64 random_;
  u32 most_polls_;
  u64 polls_ = 0;
  std::multimap<u64, Tell> kept_;  // by the poll that reports it
};

}  // namespace meshpost::net
