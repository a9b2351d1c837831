#pragma once
#include <string>

#include "meshpost/base/error.hpp"

namespace meshpost {

/// In a handler: the exception that was caught, as an Error. One that is not an Error becomes one
/// that names `operation`.
Error caught(std::string const& operation);

}  // namespace meshpost
