#pragma once
#include <mpi.h>

#include <string>

#include "meshpost/base/error.hpp"

namespace meshpost::net::mpi {

/// MPI's text for an error.
inline std::string text_of(int result) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(result, text, &size);
  return {text, static_cast<std::size_t>(size)};
}

inline void check(int result, char const* call) {
  if (result != MPI_SUCCESS)
    throw Error(Kind::bad_environment, call, text_of(result), "see what MPI says besides");
}

}  // namespace meshpost::net::mpi
