#pragma once
#include <memory>
#include <string>
#include <vector>

#include "meshpost/copy/job_memory.hpp"

namespace meshpost::pipelining {

/// A range of addresses that stand for memory of another process. Segments are named in it, and
/// nobody can read or write there.
class Addresses {
 public:
  Addresses() = default;
  /// \throws Error(out_of_memory)
  explicit Addresses(Bytes size);
  char* begin() const { return static_cast<char*>(range_.get()); }

 private:
  std::shared_ptr<void> range_;
};

/// A buffer that one process has and another copies from or to.
struct FarBuffer {
  Exposed memory;
  u32 process = 0;      ///< the process that has it
  Addresses addresses;  ///< they stand for it elsewhere
};

/// Copies pieces whose targets are addresses of `buffer`, and returns when they have arrived.
void put(FarBuffer const& buffer, std::vector<Segment> const& pieces);
/// The same for pieces whose sources are addresses of `buffer`.
void get(FarBuffer const& buffer, std::vector<Segment> const& pieces);

}  // namespace meshpost::pipelining
