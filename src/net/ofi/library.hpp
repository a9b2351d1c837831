#pragma once
#include <rdma/fabric.h>

namespace meshpost::net::ofi {

/// What libfabric exports; all else goes by way of what these return.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Loaded when it is first asked for, and kept.
/// \throws Error(bad_environment) where it is not installed
Library const& library();

}  // namespace meshpost::net::ofi
