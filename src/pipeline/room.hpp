#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost::pipelining {

/// The error for a list that takes more memory than there is.
inline Error no_room(char const* operation, u64 entries, u64 bytes_each, std::string const& of,
                     char const* remedy) {
  double const bytes = static_cast<double>(entries) * static_cast<double>(bytes_each);
  return {Kind::out_of_memory, operation,
          fmt::format("{} {} take {:.2g} GB", entries, of, bytes * 1e-9), remedy};
}

/// Refuses a list that takes more than half of this machine's memory. Otherwise the kernel would
/// promise the memory, and end the process when it is used.
/// \throws Error(out_of_memory)
inline void check_room(char const* operation, u64 entries, u64 bytes_each, std::string const& of,
                       char const* remedy) {
  auto const pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  double const bytes = static_cast<double>(entries) * static_cast<double>(bytes_each);
  if (bytes > pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 2)
    throw no_room(operation, entries, bytes_each, of, remedy);
}

/// A list that is checked in this way. It is an Error also if the process has a lower limit (ulimit
/// -v).
/// \throws Error(out_of_memory)
template <class T>
std::vector<T> make_list(char const* operation, u64 entries, std::string const& of,
                         char const* remedy) {
  check_room(operation, entries, sizeof(T), of, remedy);
  try {
    return std::vector<T>(entries);
  } catch (std::bad_alloc const&) {
    throw no_room(operation, entries, sizeof(T), of, remedy);
  }
}

}  // namespace meshpost::pipelining
