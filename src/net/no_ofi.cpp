// Replaces ofi/ in a build without libfabric.
#include "meshpost/base/error.hpp"
#include "net/engines.hpp"

namespace meshpost::net {

std::unique_ptr<Engine> make_ofi(std::string const& /*provider*/, std::string const& /*bind*/,
                                 Gpus /*gpus*/) {
  throw Error(Kind::bad_environment, "network engine ofi",
              "libfabric was not found when meshpost was built",
              "install libfabric-dev, then build it anew");
}

}  // namespace meshpost::net
