#pragma once
#include "meshpost/device/backend.hpp"

// Memory of GPUs between processes of a host, see Backend.

namespace meshpost::cuda {

SharedMemory share_memory(void const* pointer);
void* adopt_memory(int device, std::string const& handle, int file, Bytes size);
void drop_memory(void* adopted);

}  // namespace meshpost::cuda
