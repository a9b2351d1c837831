#pragma once
#include "meshpost/base/hooks.hpp"

#include <atomic>
#include <utility>

#include "support/worlds.hpp"

namespace meshpost::test {

/// A hook, for a scope.
struct Installed {
  explicit Installed(hooks::Hook hook) { hooks::install(std::move(hook)); }
  ~Installed() { hooks::install(nullptr); }
  Installed(Installed const&) = delete;
  Installed& operator=(Installed const&) = delete;
};

/// Delays one in `one_in` of all steps, drawn by `seed`: other ranks go first.
class Delays {
 public:
  Delays(u64 seed, u64 one_in)
      : hook_([this, seed, one_in](hooks::Step step, unsigned rank) {
          u64 const draw = mixed(seed, static_cast<u64>(step), rank, asked_++);
          return draw % one_in == 0 ? hooks::Action::delay : hooks::Action::proceed;
        }) {}
  u64 asked() const { return asked_; }

 private:
  std::atomic<u64> asked_{0};
  Installed hook_;
};

}  // namespace meshpost::test
