#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/rma/freed_windows.hpp"

namespace meshpost::detail {

/// `ranges`, ascending and apart from each other, and `number`.
std::vector<FreedWindows::Range> with_number(std::vector<FreedWindows::Range> ranges, u32 number);

/// FreedWindows::first and span. They enclose all of `ranges`, and as few live windows as possible.
/// Live windows have the other numbers from 1 to `next` - 1. They lie in gaps between ranges. The
/// gap with most of them is left out. The numbers behind the last range and before the first are
/// one gap, because numbers wrap.
FreedWindows::Range around(std::vector<FreedWindows::Range> const& ranges, u32 next);

/// The numbers of the windows that a World has freed, and the tables of them on its devices.
class FreedNumbers {
 public:
  /// Does everything that may fail, in tables that no kernel has seen. add() then makes them
  /// current. Not while a run is in progress. \throws Error(out_of_memory, device_failed)
  void prepare(u32 number, std::string const& name,
               std::vector<std::shared_ptr<Device>> const& own_devices);
  /// Makes the last prepared tables current.
  void add() noexcept { std::swap(now_, next_); }
  /// `next`: the number that the next window gets.
  FreedWindows on(u32 own_device, u32 next) const;
  /// "window 'inbox'", or "window 7" if its name was forgotten.
  std::string name(u32 number) const;

 private:
  static constexpr std::size_t most_names = 1000;

  struct Version {
    std::vector<FreedWindows::Range> ranges;
    std::vector<Allocation> tables;  // by own device
  };
  Version now_, next_;
  std::map<u32, std::string> names_;
};

}  // namespace meshpost::detail
