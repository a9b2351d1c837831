#include "world/mappable.hpp"

#include "meshpost/device/backend.hpp"
#include "world/memory_files.hpp"

namespace meshpost {

void Mappable::pack(wire::Packer& packer) const {
  packer.text(name.kind).value(name.id).value(size).text(handle);
  packer.value(static_cast<u8>(with_file));
}

Mappable Mappable::unpack(wire::Unpacker& unpacker) {
  Mappable mappable;
  mappable.name.kind = unpacker.text();
  mappable.name.id = unpacker.value<u64>();
  mappable.size = unpacker.value<u64>();
  mappable.handle = unpacker.text();
  mappable.with_file = unpacker.value<u8>() != 0;
  return mappable;
}

Offered offer(void const* memory, Device* device) {
  if (auto found = memory_files().find(memory))
    return {{{"file", found->id}, found->size, {}, true}, found->begin, std::move(found->file)};
  if (!device || device->in_host_memory())
    throw Error(Kind::bad_environment, "share memory with other processes",
                "it is not of JobMemory::allocate or World::allocate, and so can't be mapped by "
                "other processes",
                "allocate it with one of these");
  auto shared = backend(device->kind()).share_memory(memory);
  bool const with_file = static_cast<bool>(shared.file);
  return {{{std::string(device->kind()), shared.id}, shared.size, shared.handle, with_file},
          shared.begin,
          std::move(shared.file)};
}

Allocation allocate_mappable(Device& device, Bytes size) {
  if (device.in_host_memory()) return memory_files().allocate(size, &device);
  return device.allocate(size, MemoryKind::device);
}

}  // namespace meshpost
