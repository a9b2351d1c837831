#pragma once
#include <string>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// The open files that a job needs: each connection is one.

namespace meshpost {

/// Raises this process's limit to what a job of `processes` needs, as far as allowed. Never lowers
/// it.
void make_room_for_files(u32 processes);

/// True if errno says that no further file can be opened.
bool is_lack_of_files(int error);
/// The error for that: `cause`, the limit, and a limit that is enough for a job of `processes`.
Error lack_of_files(std::string operation, std::string const& cause, int error, u32 processes = 1);

}  // namespace meshpost
