#include "pipeline/failure.hpp"

#include <utility>

namespace meshpost::pipelining {

bool Failure::note(std::string const& where) noexcept {
  auto const keep = [this](Error error) {
    std::scoped_lock const lock(mutex_);
    if (first_) return false;
    first_ = std::move(error);
    return true;
  };
  try {
    throw;
  } catch (Error const& error) {
    return keep({error.kind(), where + ": " + error.operation(), error.cause(), error.remedy()});
  } catch (std::exception const& error) {
    return keep({Kind::kernel_failed, where, error.what(), "see the function that threw it"});
  } catch (...) {
    return keep({Kind::kernel_failed, where, "something that is not a std::exception was thrown",
                 "throw meshpost::Error or a std::exception"});
  }
}

bool Failure::any() const {
  std::scoped_lock const lock(mutex_);
  return first_.has_value();
}

void Failure::rethrow_if_any() const {
  std::scoped_lock const lock(mutex_);
  if (first_) throw Error(*first_);
}

void Failure::clear() {
  std::scoped_lock const lock(mutex_);
  first_.reset();
}

}  // namespace meshpost::pipelining
