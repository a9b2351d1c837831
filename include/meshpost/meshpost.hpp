#pragma once
// All of meshpost. Kernels that are compiled at run time get the half that they can use.

#include "meshpost/array/exchange.hpp"
#include "meshpost/array/grid.hpp"
#include "meshpost/rma/kernel.hpp"
#include "meshpost/rma/rank.hpp"
#include "meshpost/rma/roles.hpp"
#include "meshpost/rma/window.hpp"

#if !defined(__CUDACC_RTC__)
#include "meshpost/array/array.hpp"
#include "meshpost/array/distribution.hpp"
#include "meshpost/array/plan.hpp"
#include "meshpost/array/stream_exchange.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/copy/copy.hpp"
#include "meshpost/copy/job_memory.hpp"
#include "meshpost/copy/route.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/fabric/allocate.hpp"
#include "meshpost/fabric/machine.hpp"
#include "meshpost/on_stream/stream_endpoint.hpp"
#include "meshpost/pipeline/group.hpp"
#include "meshpost/pipeline/pipeline.hpp"
#include "meshpost/rma/world.hpp"
#include "meshpost/version.hpp"
#endif
