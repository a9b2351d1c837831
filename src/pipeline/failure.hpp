#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "meshpost/base/error.hpp"

namespace meshpost::pipelining {

/// The first failure of a run. Thread-safe.
class Failure {
 public:
  /// Keeps the exception being handled, with `where` in front of its text, if it is the first.
  /// \returns true if it is the first
  bool note(std::string const& where) noexcept;
  bool any() const;
  void rethrow_if_any() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

}  // namespace meshpost::pipelining
