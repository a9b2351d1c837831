#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "meshpost/base/error.hpp"

namespace meshpost::pipelining {

/// The first thing that went wrong in a run. Thread-safe.
class Failure {
 public:
  /// Keeps the exception being handled, with `where` before what it says, if it is the first.
  /// \returns whether it is
  bool note(std::string const& where) noexcept;
  bool any() const;
  void rethrow_if_any() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

}  // namespace meshpost::pipelining
