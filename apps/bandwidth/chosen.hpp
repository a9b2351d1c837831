#pragma once
#include <meshpost/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace bandwidth {

/// Names with commas between them.
inline std::string list(std::vector<std::string> const& names) {
  std::string text;
  for (auto const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Those of `all` that are named, in the order of `all`; all if none is. `owner`: of these things,
/// for the error. \throws Error(bad_argument)
template <class T, class Name>
std::vector<T> chosen(std::vector<T> const& all, std::vector<std::string> const& wanted,
                      char const* option, std::string const& owner, Name const& name) {
  std::vector<std::string> names;
  std::vector<T> found;
  for (auto const& one : all) {
    names.push_back(name(one));
    if (wanted.empty() || std::ranges::find(wanted, names.back()) != wanted.end())
      found.push_back(one);
  }
  for (auto const& one : wanted)
    if (std::ranges::find(names, one) == names.end())
      throw meshpost::Error(meshpost::Kind::bad_argument, std::string(option) + " " + one,
                            owner + " has none of that name", "there are " + list(names));
  return found;
}

}  // namespace bandwidth
