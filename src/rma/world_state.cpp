#include "rma/world_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "base/host_places.hpp"
#include "base/kept.hpp"
#include "trace/timeline_writer.hpp"

namespace meshpost::detail {
namespace {

std::atomic<u32> worlds_made{0};

Peers peers_of(WorldOptions const& options) {
  if (options.alone) return {};
  auto processes = options.processes ? options.processes : Processes::of_job();
  if (!processes) return {};
  if (options.check_delivery)
    throw Error(Kind::bad_argument, "World", "delivery can be checked within one process only",
                "run one process with several devices, or leave MESHPOST_CHECK empty");
  u32 const channel = processes->take_channel();
  return {std::move(processes), channel};
}

u64 fingerprint(std::vector<i64> const& numbers) {
  return hash_of({reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(i64)});
}

bool all_queue_launches(Layout const& layout) {
  return !layout.devices.empty() && std::ranges::all_of(layout.devices, [](auto const& device) {
    return backend(device->kind()).queues_launches();
  });
}

// What a rank may bring to one step of a collective. Above the largest, barriers are some percent
// of a step's time for one rank a GPU; the smallest takes an element of any type.
constexpr u64 smallest_slot = 256, largest_slot = u64{512} << 10;
constexpr u32 default_tags = 256;  // of the world's own counters, as in dCUDA

// What decides, beside the number of ranks, where things lie in the symmetric heap.
std::vector<Setting> settings_of(WorldOptions const& options) {
  return {
      {"lanes of each rank", "MESHPOST_LANES, or WorldOptions::lanes",
       options.lanes ? std::to_string(*options.lanes) : "the usual"},
      {"bytes for collectives", "WorldOptions::collectives", std::to_string(options.collectives)}};
}

}  // namespace

WorldState::WorldState(WorldOptions options)
    : options_(std::move(options)),
      number_(++worlds_made),
      peers_(peers_of(options_)),
      layout_(make_layout(options_.devices, options_.ranks, options_.apart, peers_,
                          settings_of(options_))),
      heap_(layout_, [this](Spaces& spaces, Bytes offset,
                            Bytes size) { peers_.extend(spaces, layout_, offset, size); }),
      devices_queue_(all_queue_launches(layout_)),
      locks_(layout_.devices),
      agreement_(peers_, layout_) {
  if (options_.check_delivery && !std::ranges::all_of(layout_.devices, &Device::in_host_memory))
    throw Error(Kind::bad_argument, "World", "delivery can be checked on CPU devices only",
                "use devices such as cpu:2, or leave MESHPOST_CHECK empty");
  if (options_.check_delivery && layout_.any_far())
    throw Error(Kind::bad_argument, "World",
                "delivery can be checked only where devices reach each other's memory",
                "leave MESHPOST_REACH empty, or MESHPOST_CHECK");
  if (!options_.check_delivery) lanes_ = LaneKeeper(options_.lanes, layout_, heap_);
  make_run_words();
  if (layout_.apart || layout_.any_far())
    proxy_ = std::make_unique<Proxy>(peers_, layout_, heap_, places_, options_.net);
  if (!peers_.alone())
    answering_.emplace(peers_,
                       [this](u32, std::string const& question) { return answer(question); });
  world_communicator_ = make_communicator(Communicator::Shape::world, 1, layout_.device_count());
  device_communicator_ = make_communicator(Communicator::Shape::device, layout_.device_count(),
                                           layout_.device_count());
  tags_ = make_window({world_communicator_, 1, 0, {}, {}, Tags{default_tags}, "the world's tags"});
  try {  // what fails in one process only must be told to the others, who would wait for it
    peers_.together("World", [this] {
      make_run_memory();
      if (proxy_) proxy_->begin_thread();
      hooks::at("start the supervisor's thread");
      supervisor_ = std::thread([this] { supervise(); });
    });
  } catch (...) {
    end_supervisor();
    throw;
  }
}

void WorldState::make_run_words() {
  run_words_ = heap_.allocate(sizeof(RunWords));
  RunWords words{};
  words.left_counts = heap_.allocate(RunWords::most_left * sizeof(LeftCount));
  for (u32 own = 0; own < layout_.own_count(); ++own)
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, run_words_), &words,
                                Bytes{sizeof words});
}

void WorldState::follow_heap() {
  auto ranges = heap_.swept_ranges();
  if (ranges == followed_) return;
  std::vector<SweptRange> swept;
  swept.reserve(ranges.size());
  for (auto const& range : ranges)
    swept.push_back({range.offset, range.size, range.what == Heap::Swept::counters ? 1u : 0u, 0});
  if (swept.size() > RunWords::most_ranges)
    throw Error(Kind::out_of_memory, "symmetric heap",
                fmt::format("counters lie in {} ranges, of {} at most", swept.size(),
                            RunWords::most_ranges),
                "use fewer windows");
  u32 const count = static_cast<u32>(swept.size());
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    char* const words = heap_.at(layout_.first_device + own, run_words_);
    auto& device = *layout_.devices[own];
    device.write(words + offsetof(RunWords, ranges), swept.data(),
                 Bytes{count * sizeof(SweptRange)});
    device.write(words + offsetof(RunWords, range_count), &count, Bytes{sizeof count});
  }
  followed_ = std::move(ranges);
}

// Numbers go on, so that nothing of what is over is taken for what comes.
void WorldState::clear_counters(u32 last_run) {
  heap_.clear_swept();
  RunWords words{};
  words.ended = last_run;
  words.arrived = last_run * layout_.ranks_per_device;
  words.met = last_run * layout_.device_count();
  words.swept = words.swept_before = words.met;
  words.begun = agreement_.begun();
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    memory::store(&run_memory_[own].news.as<RunNews>()->ended, last_run, Order::system);
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, run_words_), &words,
                                Bytes{offsetof(RunWords, range_count)});
  }
}

u32 WorldState::next_runs(u32 count) {
  runs_ += count;
  if (!peers_.alone()) peers_.processes().come_to(peers_.channel(), runs_);
  return runs_;
}

void WorldState::go_on_behind(u32 run) {
  runs_ = run;
  peers_.processes().come_to(peers_.channel(), runs_);
}

void WorldState::let_kernels_end() {
  for (auto const& [kind, crew] : crews_)
    if (crew) crew->come_to_rest();
}

Crew* WorldState::crew(std::string_view kind) {
  auto const found = crews_.find(kind);
  return found == crews_.end() ? nullptr : found->second.get();
}

void DeviceRunMemory::expect_ranks() {
  auto* const of_ranks = reports.as<RankReport>();
  for (u64 r = 0; r < reports.size() / sizeof(RankReport); ++r) {
    of_ranks[r].state = static_cast<u32>(RankState::running);
    of_ranks[r].left = of_ranks[r].all_ended = 0;
  }
}

void DeviceRunMemory::clear(Device& owner) {
  std::memset(static_cast<void*>(reports.as<RankReport>()), 0, reports.size());
  expect_ranks();
  *control.as<Control>() = {};
  std::memset(log_records.data(), 0, log_records.size());
  std::memset(log_tail.data(), 0, log_tail.size());
  std::memset(timers.data(), 0, timers.size());
  owner.fill(log_head.data(), 0, log_head.size());
}

void WorldState::make_run_memory() {
  for (auto const& device : layout_.devices) {
    DeviceRunMemory memory;
    u64 const ranks = layout_.ranks_per_device;
    memory.reports = device->allocate(Bytes{ranks * sizeof(RankReport)}, MemoryKind::pinned);
    memory.control = device->allocate(Bytes{256}, MemoryKind::pinned);
    memory.log_records =
        device->allocate(Bytes{LogRing::capacity * sizeof(LogRecord)}, MemoryKind::pinned);
    memory.log_tail = device->allocate(Bytes{256}, MemoryKind::pinned);
    memory.log_head = device->allocate(Bytes{256}, MemoryKind::device);
    memory.timers = device->allocate(Bytes{ranks * TimerBuffer::capacity * 2 * sizeof(u64)},
                                     MemoryKind::pinned);
    memory.news = device->allocate(Bytes{256}, MemoryKind::pinned);
    *memory.news.as<RunNews>() = {};
    memory.clear(*device);
    memory.base = device->allocate(Bytes{256}, MemoryKind::device);
    memory.state = device->allocate(Bytes{sizeof(RunState)}, MemoryKind::device);
    run_memory_.push_back(std::move(memory));
  }
  for (auto const& device : layout_.devices)
    if (auto& crew = crews_[std::string(device->kind())]; !crew)
      crew = backend(device->kind()).crew();
  if (physical_devices(layout_.devices).size() < layout_.devices.size()) {
    auto const reader = std::ranges::find_if_not(layout_.devices, &Device::in_host_memory);
    auto& owner = reader == layout_.devices.end() ? *layout_.devices.front() : **reader;
    split_states_ =
        owner.allocate(Bytes{layout_.devices.size() * sizeof(RunState)}, MemoryKind::pinned);
  }
}

void WorldState::end(WorldState* state) {
  state->close();
  if (state->proxy_ && state->proxy_->hangs()) net::keep_for_ever(state);
  else delete state;
}

void WorldState::close() {
  end_supervisor();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pins_ == 0; });
  }
  trace::TimelineWriter::of_process().finish();  // they read memory of this World
  // Where an error is on its way, the others are elsewhere, and will hear of it.
  if (std::uncaught_exceptions() > exceptions_) return;
  bool shared = layout_.apart;
  for (auto& [number, window] : windows_) {
    shared |= window.users && !peers_.alone();
    if (window.users) window.users->unmap();
  }
  if (!shared) return;
  try {
    // Until then others may read what is here, and have memory of users mapped.
    peers_.exchange("end the World");
  } catch (Error const&) {
    return;  // they are gone, or do something else: they know, for this process will be gone too
  }
}

void WorldState::guard(std::string_view operation, std::string_view of) const {
  if (begin_use() && !inside_kernel()) return;
  auto const what = std::string(operation) + (of.empty() ? "" : " ") + std::string(of);
  refuse_after_fork(what);
  throw Error(Kind::misuse, what, "it was called from inside a kernel",
              "call it from the host, before or after the run");
}

u64 WorldState::upload(void const* data, u64 bytes) {
  u64 const offset = heap_.allocate(bytes);
  for (u32 own = 0; own < layout_.own_count(); ++own)
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, offset), data, Bytes{bytes});
  return offset;
}

Communicator WorldState::make_communicator(Communicator::Shape shape, u32 groups, u32 places) {
  Communicator made;
  made.world = number_;
  made.number = next_communicator_++;
  made.shape = shape;
  bool const of_device = shape == Communicator::Shape::device;
  made.slots = of_device ? layout_.ranks_per_device : layout_.ranks();
  // A device of such a communicator has one part only, though its table has them all.
  u64 const all_slots = u64{2} * (made.slots + (of_device ? 1 : std::max(places, 1u)));
  u64 const budget =
      options_.collectives.value / (shape == Communicator::Shape::world ? 1 : 4) / all_slots;
  made.slot = static_cast<u32>(
      std::clamp(budget / smallest_slot * smallest_slot, smallest_slot, largest_slot));
  made.barriers =
      heap_.allocate_swept(Heap::Swept::words, std::max(groups, 1u) * sizeof(BarrierWords));
  made.generations =
      heap_.allocate_swept(Heap::Swept::words, layout_.ranks_per_device * sizeof(u32));
  made.gather = heap_.allocate(u64{2} * made.slots * made.slot);
  made.place_count = of_device ? 1 : places;
  made.parts = heap_.allocate((all_slots - u64{2} * made.slots) * made.slot);
  return made;
}

Communicator WorldState::split(Communicator const& parent,
                               std::function<i64(RankId)> const& color) {
  guard("split");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  if (parent.world != number_)
    throw Error(
        Kind::bad_argument, "split",
        fmt::format("the communicator belongs to world {}, not to {}", parent.world, number_),
        "split a communicator of the same World");
  std::vector<i64> colors(layout_.ranks());
  std::map<std::pair<i64, i64>, i64> numbers;  // (the parent's group, color) -> color in the world
  for (u32 rank = 0; rank < colors.size(); ++rank) {
    i64 const group = parent.shape == Communicator::Shape::world ? 0
                      : parent.shape == Communicator::Shape::device
                          ? layout_.device_of(rank)
                          : colors_.at(parent.number)[rank];
    i64 const own = color(RankId{rank});
    bool const member = group >= 0 && own >= 0;
    colors[rank] =
        member ? numbers.try_emplace({group, own}, static_cast<i64>(numbers.size())).first->second
               : -1;
  }
  peers_.exchange(fmt::format("split communicator {} into {} groups, {:#x}", parent.number,
                              numbers.size(), fingerprint(colors)));
  auto const tables = make_groups(colors, layout_.ranks_per_device);
  Communicator made = make_communicator(Communicator::Shape::split, tables.group_count,
                                        static_cast<u32>(tables.places.size()));
  made.groups = upload(tables.groups.data(), tables.groups.size() * sizeof(Group));
  made.members = upload(tables.members.data(), tables.members.size() * sizeof(u32));
  made.places = upload(tables.places.data(), tables.places.size() * sizeof(u32));
  colors_[made.number] = std::move(colors);
  return made;
}

std::string WorldState::window_name(u32 number) const {
  auto const found = windows_.find(number);
  return found == windows_.end() ? freed_.name(number) : found->second.name;
}

std::string WorldState::communicator_name(u32 number) const {
  if (number == world_communicator_.number) return "the world";
  if (number == device_communicator_.number) return "its device";
  return fmt::format("communicator {}", number);
}

bool WorldState::same_group(u32 one, u32 other, u32 communicator) const {
  if (communicator == world_communicator_.number) return true;
  if (communicator == device_communicator_.number)
    return layout_.device_of(one) == layout_.device_of(other);
  auto const colors = colors_.find(communicator);
  return colors != colors_.end() && colors->second[one] == colors->second[other];
}

}  // namespace meshpost::detail
