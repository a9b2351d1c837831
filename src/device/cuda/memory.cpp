#include "device/cuda/memory.hpp"

#include <array>

#include "device/cuda/check.hpp"

namespace meshpost::cuda {

std::optional<Found> identify(void const* pointer) {
  unsigned int type = 0, managed = 0;
  int ordinal = 0;
  CUdeviceptr begin = 0;
  size_t size = 0;
  unsigned long long id = 0;
  std::array wanted{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                    CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_BUFFER_ID};
  std::array<void*, wanted.size()> results{&type, &managed, &ordinal, &begin, &size, &id};
  auto const address = reinterpret_cast<CUdeviceptr>(pointer);
  auto const status =
      driver().pointer_attributes(wanted.size(), wanted.data(), results.data(), address);
  if (status != CUDA_SUCCESS || type == 0) return std::nullopt;
  Found found;
  found.device = ordinal < 0 ? 0 : static_cast<u32>(ordinal);
  found.range.kind =
      type == CU_MEMORYTYPE_HOST && !managed ? MemoryKind::pinned : MemoryKind::device;
  bool const known = begin != 0 && size != 0 && address >= begin && address < begin + size;
  found.range.begin =
      known ? reinterpret_cast<char const*>(begin) : static_cast<char const*>(pointer);
  // If the driver does not tell the size, nothing is refused.
  found.range.size = known ? size : ~u64{0} - address;
  found.range.id = known ? id : 0;
  return found;
}

u64 memory_id(void const* pointer) {
  unsigned long long id = 0;
  auto const status = driver().pointer_attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                 reinterpret_cast<CUdeviceptr>(pointer));
  return status == CUDA_SUCCESS ? id : 0;
}

}  // namespace meshpost::cuda
