#include "rma/windows/host_windows.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/deadline.hpp"
#include "base/host_hooks.hpp"
#include "base/pauses.hpp"
#include "base/tsan_order.hpp"
#include "meshpost/device/block.hpp"
#include "rma/via/direct/access.hpp"
#include "rma/windows/element_range.hpp"

namespace meshpost::detail {
HostId HostWindows::host(u32 process) const {
  if (process >= group_.count())
    throw Error(Kind::bad_argument, "host",
                fmt::format("process {} does not exist among {}", process, group_.count()),
                fmt::format("name one from 0 to {}", group_.count() - 1));
  for (u32 device = 0; device < layout_.device_count(); ++device)
    if (group_.alone() || layout_.processes[device] == process) return {device};
  throw Error(Kind::bad_argument, "host",
              fmt::format("process {} has no device, where its counters would be", process),
              "notify the host of a process that has one");
}

std::string HostWindows::sender_name(u32 sender) const {
  if (sender < layout_.ranks()) return fmt::format("rank {}", sender);
  u32 const other = sender - layout_.ranks();
  if (other >= group_.count()) {
    u32 const stream = other - group_.count();
    u32 const device = stream / StreamId::most;
    return device >= layout_.device_count()
               ? fmt::format("sender {}", sender)
               : fmt::format("stream {} of {}", stream % StreamId::most, layout_.names[device]);
  }
  return group_.alone() ? "the host" : fmt::format("the host of process {}", other);
}

void HostWindows::check_rank(std::string const& operation, RankId rank) const {
  if (rank < layout_.ranks()) return;
  throw Error(
      Kind::bad_argument, operation,
      fmt::format("rank {} does not exist in a world of {} ranks", rank.value, layout_.ranks()),
      fmt::format("use ranks from 0 to {}", layout_.ranks() - 1));
}

void HostWindows::check_range(std::string const& operation, WindowRecord const& record, RankId rank,
                              u64 offset, u64 count) const {
  u64 const limit = record.parts.empty() ? record.info.count : record.parts[rank].count;
  if (offset <= limit && count <= limit - offset) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("{} in the part of rank {}, which has {}", named_elements(offset, count),
                          rank.value, limit),
              "stay inside the part");
}

void HostWindows::check_tag(std::string const& operation, WindowInfo const& info, Tag tag) const {
  if (tag.value < info.tags) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("tag {} does not exist; it has {}", tag.value, info.tags),
              "use a smaller tag, or make the window with more");
}

void HostWindows::check_count(std::string const& operation, u64 count) const {
  constexpr u32 most = WindowInfo::most_awaited;
  if (count <= most) return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("{} notifications were asked for; it may be {}", count, most),
              "wait for fewer at once");
}

void HostWindows::transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
                           void* target, void const* source, u64 count) {
  auto const operation = source ? "write" : "read";
  guard(operation);
  auto const lock = runs_.turn();
  transfer(windows_.record_of(window, operation), element_bytes, rank, offset, target, source,
           count);
}

void HostWindows::transfer(WindowRecord const& record, u64 element_bytes, RankId rank, u64 offset,
                           void* target, void const* source, u64 count) {
  auto const operation = source ? "write" : "read";
  check_rank(operation, rank);
  u32 const device = layout_.device_of(rank);
  check_range(fmt::format("{} {}", operation, record.name), record, rank, offset, count);
  if (count == 0) return;
  auto const near = layout_.neighbour(device);
  char* const part = windows_.part_of(near, record, rank);
  u64 const skipped = offset * element_bytes;
  Bytes const size{count * element_bytes};
  bool const mapped = part && layout_.devices.empty() && layout_.traits[device].in_host_memory &&
                      !group_.far(layout_.processes[device]);
  if (near) {
    auto& through = *layout_.devices[*near];
    if (target) through.read(target, part + skipped, size);
    else through.write(part + skipped, source, size);
  } else if (mapped) {
    std::memcpy(target ? target : part + skipped, target ? part + skipped : source, size);
  } else if (layout_.far_processes) {
    auto const address = windows_.address_of(record, rank);
    far_.transfer({device, address.offset + skipped}, target, source, size);
  } else {
    throw Error(
        Kind::bad_environment, operation,
        fmt::format("{} is out of reach of a process without devices", layout_.names[device]),
        "read and write in a process that has some");
  }
}

Part HostWindows::own_part(WindowInfo const& window, RankId rank) {
  guard("part");
  auto const lock = runs_.now();
  auto const& record = windows_.record_of(window, "part");
  auto const told = fmt::format("part, {}", record.name);
  check_rank(told, rank);
  u32 const device = layout_.device_of(rank);
  if (!layout_.owns(device))
    throw Error(
        Kind::bad_argument, told,
        fmt::format("rank {} is on {}, which is another process's", rank.value,
                    layout_.names[device]),
        layout_.devices.empty()
            ? "ask in a process that has devices"
            : fmt::format(
                  "name one of ranks {} to {}", layout_.first_device * layout_.ranks_per_device,
                  (layout_.first_device + layout_.own_count()) * layout_.ranks_per_device - 1));
  u64 const count = record.parts.empty() ? record.info.count : record.parts[rank].count;
  return {windows_.part_of(device - layout_.first_device, record, rank), count};
}

u64 HostWindows::part_count(WindowInfo const& window, RankId rank) {
  guard("read");
  auto const lock = runs_.now();
  auto const& record = windows_.record_of(window, "read");
  if (rank >= layout_.ranks()) return 0;  // transfer() refuses it and names the numbers
  return record.parts.empty() ? record.info.count : record.parts[rank].count;
}

void HostWindows::raise(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
                        void const* source, u64 elements, Tag tag) {
  constexpr auto operation = "notify from the host";
  guard(operation);
  auto const lock = runs_.turn();
  auto const& record = windows_.record_of(window, operation);
  auto const& info = record.info;
  check_rank(operation, rank);
  check_tag(fmt::format("{}, {}", operation, record.name), info, tag);
  if (source) transfer(record, element_bytes, rank, offset, nullptr, source, elements);
  u32 const device = layout_.device_of(rank), local = rank % layout_.ranks_per_device;
  // Its counter is an offset.
  via::Signal const count =
      via::Signal::of(info.counters + u64{local} * info.counter_pitch() + tag.value * sizeof(u32),
                      u64{info.counter_part} * WindowInfo::raised_by,
                      WindowInfo::raiser(layout_.ranks() + group_.number()));
  bool const reached = layout_.neighbour(device) ||
                       (layout_.devices.empty() && !group_.far(layout_.processes[device]));
  bool const of_host = layout_.traits[device].in_host_memory && reached;
  // After a failure the counter's owner may clear its memory until the next run begins.
  bool const lasting = agreement_.valid();
  if (!layout_.owns(device) && !(of_host && lasting)) return far_.raise(device, count);
  auto const here = count.moved_to(reinterpret_cast<u64>(heap_.at(device, count.at())));
  if (layout_.owns(device)) return endpoint_.raise(device - layout_.first_device, here, lasting);
  others_are_told();
  HostAccess().deliver({{.signal = here}});  // behind the bytes above
}

void HostWindows::check_stream(std::string const& operation, WindowInfo const& info,
                               StreamId stream, Tag tag) const {
  if (stream.device >= layout_.device_count())
    throw Error(Kind::bad_argument, operation,
                fmt::format("device {} does not exist in a world of {} devices", stream.device,
                            layout_.device_count()),
                fmt::format("name a stream of devices 0 to {}", layout_.device_count() - 1));
  if (stream.number >= StreamId::most)
    throw Error(Kind::bad_argument, operation,
                fmt::format("a device has streams 0 to {}; {} was named", StreamId::most - 1,
                            stream.number),
                "use smaller numbers");
  check_tag(operation, info, tag);
}

void HostWindows::raise(WindowInfo const& window, StreamId stream, Tag tag) {
  constexpr auto operation = "notify a stream from the host";
  guard(operation);
  WindowInfo info;
  {
    auto const lock = runs_.now();
    auto const& record = windows_.record_of(window, operation);
    info = record.info;
    check_stream(fmt::format("{}, {}", operation, record.name), info, stream, tag);
  }
  raise_endpoint(info, stream, tag);
}

void HostWindows::raise_endpoint(WindowInfo const& info, StreamId stream, Tag tag) {
  if (layout_.owns(stream.device)) {
    others_are_told();
    endpoints_.raise(info.number, stream, tag);
    return;
  }
  bool const reached = layout_.neighbour(stream.device) ||
                       (layout_.devices.empty() && !group_.far(layout_.processes[stream.device]));
  if (!layout_.traits[stream.device].in_host_memory || !reached)
    return far_.raise(info, stream, tag);
  others_are_told();
  u64 const offset = info.stream_counters(stream.number, WindowInfo::raised);
  memory::add(reinterpret_cast<u32*>(heap_.at(stream.device, offset)) + tag.value, 1,
              Order::system);
}

u32 HostWindows::count_of(WindowInfo const& info, Tag tag) const {
  auto const* const counter =
      reinterpret_cast<u32 const*>(heap_.at(layout_.first_device, info.host_counters)) + tag.value;
  auto& device = *layout_.devices.front();
  if (device.in_host_memory()) return memory::load_acquire(counter);
  u32 count = 0;
  device.read(&count, counter, Bytes{sizeof count});
  return count;
}

void HostWindows::forget_counts() {
  if (layout_.devices.empty()) return;
  for (auto const& [number, window] : windows_.all()) {
    if (window.host_bytes == 0) continue;
    std::vector<u32> counts(window.info.tags);
    layout_.devices.front()->read(counts.data(),
                                  heap_.at(layout_.first_device, window.info.host_counters),
                                  Bytes{counts.size() * sizeof(u32)});
    std::scoped_lock const lock(window.host->mutex);
    for (u32 tag = 0; tag < counts.size(); ++tag)
      window.host->consumed[tag] = counts[tag] + window.host->raised[tag];
  }
}

// Another stream that waits may hold up copies: no lock is held meanwhile. The caller keeps the
// World. A window that is freed meanwhile has no counts that matter, and the heap stays mapped; so
// nothing is written once it is freed.
void HostWindows::forget_counts(u32 own, u32 stream) {
  std::vector<std::shared_ptr<HostCounters>> windows;
  {
    auto const lock = runs_.now();
    for (auto const& [number, window] : windows_.all()) windows.push_back(window.host);
  }
  auto& device = *layout_.devices[own];
  for (auto const& window : windows) {
    auto const& info = window->info;
    auto const words_of = [&](WindowInfo::StreamArray array) {
      return heap_.at(layout_.first_device + own, info.stream_counters(stream, array));
    };
    Bytes const size{info.tags * sizeof(u32)};
    if (size == 0) continue;
    std::vector<u32> raised(info.tags);
    device.read(raised.data(), words_of(WindowInfo::raised), size);
    {
      std::scoped_lock const of_window(window->mutex);
      if (window->freed) continue;
      auto const* const by_host =
          endpoints_.of_stream(*window, {layout_.first_device + own, stream});
      for (u32 tag = 0; window->of_streams && tag < info.tags; ++tag) raised[tag] += by_host[tag];
    }
    device.write(words_of(WindowInfo::consumed), raised.data(), size);
  }
}

void HostWindows::wait(WindowInfo const& window, Tag tag, u32 count,
                       std::chrono::milliseconds deadline) {
  constexpr auto operation = "wait on the host";
  guard(operation);
  WindowInfo info;
  std::string name;
  std::shared_ptr<HostCounters> host;
  {
    auto const lock = runs_.now();
    auto const& record = windows_.record_of(window, operation);
    info = record.info, name = record.name, host = record.host;
  }
  auto const told = fmt::format("{}, {}", operation, name);
  if (layout_.devices.empty())
    throw Error(Kind::misuse, told, "this process has no device, where its counters would be",
                "wait in a process that has one");
  check_tag(told, info, tag);
  check_count(told, count);
  runs_.wake_supervisor(true);  // else perhaps nobody supervises the launched runs
  u64 const failed_before = runs_.failures_before_last_launch();
  Deadline timeout(deadline);
  for (Pauses pauses;; pauses.rest()) {
    u32 const counted = count_of(info, tag);  // may take long: no lock is held
    u32 come = 0;
    {
      std::scoped_lock const lock(host->mutex);
      if (host->freed)
        throw Error(Kind::misuse, told, "the window was freed meanwhile",
                    "use windows until they are freed");
      come = counted + host->raised[tag.value] - host->consumed[tag.value];
      if (static_cast<i32>(come) < 0) come = 0;  // another thread has consumed since
      if (come >= count) {
        host->consumed[tag.value] += count;
        heard_of_others();
        return;
      }
    }
    auto const so_far =
        fmt::format("{} of {} notifications of tag {} had come", come, count, tag.value);
    if (auto const why = runs_.failure_behind(failed_before))
      throw Error(
          why->kind(), told,
          fmt::format("{} when a run failed: {}: {}", so_far, why->operation(), why->cause()),
          why->remedy());
    if (!group_.alone())
      if (auto const loss =
              runs_.seems_idle() ? group_.processes().gone() : group_.processes().lost())
        throw group_.processes().lost_error(told, *loss);
    if (timeout.ends(come))
      throw Error(Kind::deadline, told,
                  fmt::format("{}, and none for {}{}", so_far, timeout.text(), group_.silence()),
                  "see that kernels notify this host with this tag, or give a longer deadline");
  }
}

}  // namespace meshpost::detail
