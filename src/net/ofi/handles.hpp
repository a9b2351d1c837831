#pragma once
// Handles of libfabric, closed in the reverse order of their making.
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <memory>
#include <string>

#include "meshpost/base/error.hpp"
#include "net/ofi/library.hpp"

namespace meshpost::net::ofi {

struct Close {
  template <class F>
  void operator()(F* opened) const {
    fi_close(&opened->fid);
  }
};
template <class F>
using Handle = std::unique_ptr<F, Close>;

struct FreeInfo {
  void operator()(fi_info* info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// \throws Error(bad_environment) if libfabric returned an error.
inline void check(long result, std::string const& attempted) {
  if (result >= 0) return;
  bool const lacks_files = result == -FI_EMFILE;
  throw Error(Kind::bad_environment, "libfabric: " + attempted,
              library().strerror(static_cast<int>(-result)),
              lacks_files ? "raise the limit of open files (ulimit -n)"
                          : "FI_LOG_LEVEL=warn says more; try another provider, as in ofi:tcp");
}

}  // namespace meshpost::net::ofi
