#include "net/engines.hpp"
#include "net/ofi/ofi.hpp"

namespace meshpost::net {

std::unique_ptr<Engine> make_ofi(std::string const& provider, std::string const& bind) {
  return std::make_unique<ofi::Ofi>(provider, bind);
}

}  // namespace meshpost::net
