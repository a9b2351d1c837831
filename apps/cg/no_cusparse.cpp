// Without cuSPARSE.
#include "stream_product.hpp"

namespace cg {

bool has_cusparse() { return false; }

std::unique_ptr<StreamProduct> make_cusparse_product(std::shared_ptr<meshpost::Device>,
                                                     meshpost::Stream&, Block const&) {
  return nullptr;  // nobody asks
}

}  // namespace cg
