#include "net/engines.hpp"
#include "net/ofi/ofi.hpp"

namespace meshpost::net {

std::unique_ptr<Engine> make_ofi(std::string const& provider, std::string const& bind, Gpus gpus) {
  return std::make_unique<ofi::Ofi>(provider, bind, gpus);
}

}  // namespace meshpost::net
