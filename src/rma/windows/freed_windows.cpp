#include "rma/windows/freed_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace meshpost::detail {

using Range = FreedWindows::Range;

std::vector<Range> with_number(std::vector<Range> ranges, u32 number) {
  auto behind = std::ranges::find_if(ranges, [&](Range const& one) { return number < one.begin; });
  if (behind != ranges.begin()) {
    auto const before = behind - 1;
    if (number < before->end) return ranges;
    if (number == before->end) {
      ++before->end;
      if (behind != ranges.end() && behind->begin == before->end) {
        before->end = behind->end;
        ranges.erase(behind);
      }
      return ranges;
    }
  }
  if (behind != ranges.end() && behind->begin == number + 1) --behind->begin;
  else ranges.insert(behind, {number, number + 1});
  return ranges;
}

Range around(std::vector<Range> const& ranges, u32 next) {
  if (ranges.empty()) return {0, 0};
  u32 most = next - ranges.back().end + ranges.front().begin - 1;
  Range around{ranges.front().begin, ranges.back().end};
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    u32 const windows = ranges[i + 1].begin - ranges[i].end;
    if (windows <= most) continue;
    most = windows;
    around = {ranges[i + 1].begin, ranges[i].end};
  }
  return around;
}

void FreedNumbers::prepare(u32 number, std::string const& name,
                           std::vector<std::shared_ptr<Device>> const& own_devices) {
  next_.ranges = with_number(now_.ranges, number);
  Bytes const size{next_.ranges.size() * sizeof(Range)};
  next_.tables.resize(own_devices.size());
  for (std::size_t own = 0; own < own_devices.size(); ++own) {
    auto& table = next_.tables[own];
    if (table.size() < size)
      table = own_devices[own]->allocate(Bytes{2 * size.value + 256}, MemoryKind::device);
    own_devices[own]->write(table.data(), next_.ranges.data(), size);
  }
  names_[number] = name;  // only freed windows are looked up here
  if (names_.size() > most_names) names_.erase(names_.begin());
}

FreedWindows FreedNumbers::on(u32 own_device, u32 next) const {
  if (now_.ranges.empty()) return {};
  auto const [begin, end] = around(now_.ranges, next);
  return {begin, end - begin, static_cast<u32>(now_.ranges.size()),
          now_.tables[own_device].as<Range>()};
}

std::string FreedNumbers::name(u32 number) const {
  auto const found = names_.find(number);
  return found == names_.end() ? fmt::format("window {}", number) : found->second;
}

}  // namespace meshpost::detail
