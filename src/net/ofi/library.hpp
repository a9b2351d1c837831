#pragma once
#include <rdma/fabric.h>

namespace meshpost::net::ofi {

/// The exported functions of libfabric. All others are reached through the objects that these
/// return.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Loaded at the first call, and kept.
/// \throws Error(bad_environment) if it is not installed
Library const& library();

}  // namespace meshpost::net::ofi
