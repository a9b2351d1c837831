#pragma once
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshpost/compat/coaccel.h"
#include "meshpost/copy/copy.hpp"

// Functions shared by all of COACCEL's C functions.

namespace meshpost::coaccel {

/// Keeps the text for coaccel_last_error().
void keep(char const* text) noexcept;

[[noreturn]] void refuse(char const* operation, std::string cause, char const* remedy);

/// \throws Error(bad_argument) for a negative count and null lists
std::vector<Segment> segments_of(char const* operation, int count, coaccel_address const* dst,
                                 coaccel_address const* src, size_t const* size);

/// Warns on the event sink. An exception of the sink is ignored: the caller may be written in C.
void warn(char const* operation, char const* text) noexcept;

/// Returns the result of `work`. If `work` throws, it keeps the text and returns null. If there is
/// nothing to return, so that the caller would not notice, it warns.
template <class Work>
auto guarded(char const* operation, Work&& work) noexcept -> decltype(work()) {
  using Result = decltype(work());
  auto const failed = [&](char const* text) {
    keep(text);
    if constexpr (std::is_void_v<Result>) warn(operation, text);
  };
  try {
    return work();
  } catch (std::exception const& error) {
    failed(error.what());
  } catch (...) {
    failed("something that is not a std::exception was thrown");
  }
  if constexpr (!std::is_void_v<Result>) return Result{};
}

}  // namespace meshpost::coaccel
