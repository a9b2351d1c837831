#pragma once
#include <meshpost/meshpost.hpp>

#include <memory>

#include "product.hpp"

namespace cg {

/// Inner or outer rows of a device.
struct Block {
  Rows rows;
  u64 count, entries;
  u64 columns;  ///< elements of the vector, with its halo
};

/// y = A x for a block, enqueued on a stream of its device.
class StreamProduct {
 public:
  virtual ~StreamProduct() = default;
  virtual void enqueue(double const* x, double* y) = 0;
};

/// The plain kernel.
std::unique_ptr<StreamProduct> make_plain_product(std::shared_ptr<meshpost::Device> device,
                                                  meshpost::Stream& stream, Block const& block,
                                                  u32 lanes);

/// True if this program was built with cuSPARSE.
bool has_cusparse();
/// By cuSPARSE, for a GPU and a block with entries. \throws Error(device_failed, out_of_memory)
std::unique_ptr<StreamProduct> make_cusparse_product(std::shared_ptr<meshpost::Device> device,
                                                     meshpost::Stream& stream, Block const& block);

}  // namespace cg
