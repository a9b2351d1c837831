#include "compat/mp/request.hpp"

#include <fmt/format.h>

#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {

bool AwaitedWord::holds() const {
  u32 const found = memory::load_acquire(word);
  switch (test) {
    case WordTest::greater_equal: return static_cast<i32>(found - value) >= 0;
    case WordTest::equal: return found == value;
    case WordTest::any_bit: return (found & value) != 0;
  }
  return false;
}

std::string AwaitedWord::text() const {
  u32 const found = memory::load_acquire(word);
  switch (test) {
    case WordTest::greater_equal:
      return fmt::format("the word at {} is {}; >= {} is awaited", fmt::ptr(word), found, value);
    case WordTest::equal:
      return fmt::format("the word at {} is {}; {} is awaited", fmt::ptr(word), found, value);
    case WordTest::any_bit: break;
  }
  return fmt::format("the word at {} is {:#x}; any bit of {:#x} is awaited", fmt::ptr(word), found,
                     value);
}

std::string Request::text() const {
  switch (what.kind) {
    case Task::send: return fmt::format("send of {} bytes to process {}", what.size(), what.peer);
    case Task::receive:
      return fmt::format("receive of {} bytes from process {}", what.size(), what.peer);
    case Task::put: return fmt::format("put of {} bytes to process {}", what.size(), what.peer);
    case Task::get: return fmt::format("get of {} bytes from process {}", what.size(), what.peer);
    case Task::store: return "store of a word";
    case Task::watch: break;
  }
  return "wait for a word";
}

}  // namespace meshpost::compat::mp
