#include "pipeline/crossing.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace meshpost::pipelining {
namespace {

RemoteBytes there(FarBuffer const& buffer, void const* address, Bytes size) {
  auto const offset = static_cast<char const*>(address) - buffer.addresses.begin();
  return buffer.memory.at(buffer.process, static_cast<u64>(offset), size);
}

}  // namespace

Addresses::Addresses(Bytes size) {
  u64 const bytes = size;
  void* const begin =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    throw Error(Kind::out_of_memory, "make a pipeline",
                fmt::format("{} bytes of addresses: {}", bytes, std::strerror(errno)),
                "use smaller chunks");
  range_ = {begin, [bytes](void* range) { munmap(range, bytes); }};
}

void put(FarBuffer const& buffer, std::vector<Segment> const& pieces) {
  std::vector<RemotePut> puts;
  for (auto const& [target, source, size] : pieces)
    if (size != 0) puts.push_back({there(buffer, target, size), source});
  put_batch(puts).wait();
}

void get(FarBuffer const& buffer, std::vector<Segment> const& pieces) {
  std::vector<RemoteGet> gets;
  for (auto const& [target, source, size] : pieces)
    if (size != 0) gets.push_back({target, there(buffer, source, size)});
  get_batch(gets).wait();
}

}  // namespace meshpost::pipelining
