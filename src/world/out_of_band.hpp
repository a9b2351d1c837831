#pragma once
#include "net/out_of_band.hpp"
#include "world/processes.hpp"

namespace meshpost {

/// Sends a channel's notices over the connections to process 0. `channel`: of messages; nobody else
/// uses it.
class Notices final : public net::OutOfBand {
 public:
  Notices(Processes& processes, u32 channel) : processes_(processes), channel_(channel) {}
  void tell(u32 peer, std::string const& bytes) override;
  std::vector<Notice> take() override;

 private:
  Processes& processes_;
  u32 channel_;
};

}  // namespace meshpost
