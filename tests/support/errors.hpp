#pragma once
#include <gtest/gtest.h>
#include <meshpost/base/error.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

namespace meshpost::test {

/// The error that `work` throws; a failed test if it throws none.
template <class Work>
Error error_of(Work&& work) {
  try {
    work();
  } catch (Error const& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {Kind::misuse, "nothing", "was thrown", ""};
}

/// True if an error is of this kind and its text holds all these pieces.
inline testing::AssertionResult says(Error const& error, Kind kind,
                                     std::initializer_list<std::string_view> pieces) {
  std::string_view const text = error.what();
  if (error.kind() != kind)
    return testing::AssertionFailure()
           << "kind is " << to_string(error.kind()) << ", not " << to_string(kind) << ": " << text;
  for (auto const piece : pieces)
    if (text.find(piece) == std::string_view::npos)
      return testing::AssertionFailure() << "'" << piece << "' is not in: " << text;
  return testing::AssertionSuccess();
}

}  // namespace meshpost::test
