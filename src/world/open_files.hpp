#pragma once
#include <string>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// What a job asks of a process's limit of open files: each connection is one.

namespace meshpost {

/// Raises this process's limit, as far as it may, to what a job of so many takes. A limit that is
/// higher stays.
void make_room_for_files(u32 processes);

/// Whether errno says that no further file is to be had.
bool is_lack_of_files(int error);
/// What to throw then: `cause`, the limit, and what would do for a job of so many.
Error lack_of_files(std::string operation, std::string const& cause, int error, u32 processes = 1);

}  // namespace meshpost
