#pragma once
#include <cerrno>
#include <cstring>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/base/error.hpp"

// What every file here needs of the operating system: descriptors that close themselves, errors.

namespace meshpost::launch {

using Fd = Descriptor;

/// The error that errno tells of, behind a call of the system that returned -1.
inline Error system_error(std::string operation, std::string remedy) {
  return {Kind::bad_environment, std::move(operation), std::strerror(errno), std::move(remedy)};
}

}  // namespace meshpost::launch
