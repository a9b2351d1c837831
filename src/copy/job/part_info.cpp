#include "copy/job/part_info.hpp"

#include "world/wire.hpp"

namespace meshpost::copying {

std::string PartInfo::pack() const {
  wire::Packer packer;
  packer.value(size).value(address).value(slot).value(memory);
  packer.value(static_cast<u8>(on_host)).text(device).text(bus);
  allocation.pack(packer);
  packer.value(offset).text(why);
  packer.value(static_cast<u32>(freed.size()));
  for (auto const& one : freed) packer.text(one.kind).value(one.id);
  return packer.take();
}

PartInfo PartInfo::unpack(std::string_view bytes) {
  wire::Unpacker unpacker(bytes);
  PartInfo part;
  part.size = unpacker.value<u64>();
  part.address = unpacker.value<u64>();
  part.slot = unpacker.value<u32>();
  part.memory = unpacker.value<MemoryKind>();
  part.on_host = unpacker.value<u8>() != 0;
  part.device = unpacker.text();
  part.bus = unpacker.text();
  part.allocation = Mappable::unpack(unpacker);
  part.offset = unpacker.value<u64>();
  part.why = unpacker.text();
  for (u32 left = unpacker.value<u32>(); left > 0; --left) {
    auto const kind = unpacker.text();
    part.freed.push_back({kind, unpacker.value<u64>()});
  }
  return part;
}

}  // namespace meshpost::copying
