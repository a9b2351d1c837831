#include "world/greeting.hpp"

#include "meshpost/base/error.hpp"
#include "meshpost/base/fn.hpp"
#include "world/wire.hpp"

namespace meshpost::greeting {
namespace {

constexpr u32 wire_version = 9;

}  // namespace

u32 version() { return wire_version << 16 | abi_version; }

std::string pack(Hello const& mine) {
  return wire::Packer()
      .value(mine.process)
      .value(mine.processes)
      .value(mine.version)
      .value(mine.pid)
      .text(mine.host)
      .text(mine.job)
      .take();
}

Hello unpack(std::string_view bytes) {
  wire::Unpacker unpacker(bytes);
  Hello hello;
  hello.process = unpacker.value<u32>();
  hello.processes = unpacker.value<u32>();
  hello.version = unpacker.value<u32>();
  if (hello.version != version()) return hello;  // the fields that follow may lie elsewhere
  hello.pid = unpacker.value<i64>();
  hello.host = unpacker.text();
  hello.job = unpacker.text();
  return hello;
}

}  // namespace meshpost::greeting
