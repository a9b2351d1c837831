#include "rma/runs/launching/run_part.hpp"

#include "world/wire.hpp"

namespace meshpost::detail {

std::string RunPart::pack() const {
  wire::Packer packer;
  packer.value(reason).value(static_cast<u8>(error.has_value()));
  if (error) packer.text(wire::pack(*error));
  packer.value(static_cast<u32>(unconsumed.size()));
  for (auto const& left : unconsumed)
    packer.text(left.window).value(left.rank).value(left.tag).value(left.count).value(left.sender);
  packer.value(unconsumed_left_out);
  packer.value(static_cast<u32>(timings.size()));
  for (auto const& device : timings) {
    packer.value(static_cast<u32>(device.size()));
    for (double const seconds : device) packer.value(seconds);
  }
  packer.text(failed_state);
  return packer.take();
}

RunPart RunPart::unpack(std::string_view bytes) {
  wire::Unpacker unpacker(bytes);
  RunPart part;
  part.reason = unpacker.value<Reason>();
  if (unpacker.value<u8>() != 0) part.error = wire::unpack_error(unpacker.text());
  part.unconsumed.resize(unpacker.value<u32>());
  for (auto& left : part.unconsumed) {
    left.window = unpacker.text();
    left.rank = unpacker.value<RankId>();
    left.tag = unpacker.value<Tag>();
    left.count = unpacker.value<u32>();
    left.sender = unpacker.value<RankId>();
  }
  part.unconsumed_left_out = unpacker.value<u64>();
  part.timings.resize(unpacker.value<u32>());
  for (auto& device : part.timings) {
    device.resize(unpacker.value<u32>());
    for (double& seconds : device) seconds = unpacker.value<double>();
  }
  part.failed_state = unpacker.text();
  return part;
}

}  // namespace meshpost::detail
