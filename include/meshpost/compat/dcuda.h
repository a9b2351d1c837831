#pragma once
// dCUDA, the interface of the thesis (listings 3.3 to 3.5), on top of meshpost. See docs/dcuda.md.
//
// The two halves may also be included by the thesis's own names. Their folder is on the include
// path of the CMake target meshpost::dcuda.
#include "meshpost/compat/dcuda/dcuda_device.cu.h"
#include "meshpost/compat/dcuda/dcuda_host.h"
