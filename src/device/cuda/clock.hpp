#pragma once
#include "meshpost/base/fn.hpp"

namespace meshpost::cuda {

/// Nanoseconds to add to the global timer of `device` to get the host's steady clock, within a few
/// microseconds. Runs a short kernel.
i64 clock_offset(int device);

}  // namespace meshpost::cuda
