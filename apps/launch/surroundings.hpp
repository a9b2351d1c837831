#pragma once
#include <sys/resource.h>

#include <string>
#include <vector>

#include "meshpost/base/fn.hpp"
#include "system.hpp"

// What the launcher itself takes from where it was started, and leaves there.

namespace meshpost::launch {

/// Each process takes two descriptors here or three. Returns the limit as it was.
rlimit raise_file_limit();

/// Opens folder/process-k.log for each process, empty; makes the folder. None, if it has no name.
std::vector<Fd> open_logs(std::string const& folder, u32 processes);

/// Goes to where the processes start; an empty name: stays.
void enter(std::string const& folder);

/// The file that this program was started from.
std::string own_program();

/// The variables of this process.
std::vector<std::string> inherited_environment();

/// Makes sure that 0, 1 and 2 are open, so that no pipe or socket gets these numbers.
void open_standard_streams();

}  // namespace meshpost::launch
