#pragma once
#include "rma/via/access.hpp"

namespace meshpost::detail {

/// The host's loads and stores, in memory of CPU devices.
class HostAccess : public Access {
 public:
  void deliver(Delivery const& delivery) override;
  void read(void const* source, u64 bytes, Take take) override;
  void write(void* target, std::string_view bytes, Keep keep, std::function<void()> then) override;
};

}  // namespace meshpost::detail
