#include "rma/world_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshpost::detail {
namespace {

std::atomic<u32> worlds_made{0};

constexpr u64 gather_bytes =
    u64{4} << 20;                  // both halves of a communicator's gathering area, at most about
constexpr u32 default_tags = 256;  // of the world's own counters, as in dCUDA

u64 padded(u64 bytes, u64 unit) { return (bytes + unit - 1) / unit * unit; }

// A rank's counters and, behind them, who raised each last; whole cache lines.
u32 counter_pitch(u32 tags) { return static_cast<u32>(2 * padded(tags * sizeof(u32), 64)); }

// The end of a run, well or not, as streams wait for it.
class RunEnd : public Event {
 public:
  explicit RunEnd(std::shared_ptr<RunRecord> record) : record_(std::move(record)) {}
  bool done() override {
    std::scoped_lock const lock(record_->mutex);
    return record_->done;
  }
  void wait() override {
    std::unique_lock lock(record_->mutex);
    record_->changed.wait(lock, [this] { return record_->done; });
  }
  void then(std::function<void()> action) override {
    {
      std::scoped_lock const lock(record_->mutex);
      if (!record_->done) {
        record_->at_end.push_back(std::move(action));
        return;
      }
    }
    action();
  }

 private:
  std::shared_ptr<RunRecord> record_;
};

}  // namespace

WorldState::WorldState(WorldOptions options)
    : options_(std::move(options)),
      number_(++worlds_made),
      layout_(make_layout(options_.devices, options_.ranks)),
      heap_(layout_) {
  if (options_.check_delivery && layout_.devices.front()->kind() != "cpu")
    throw Error(Kind::bad_argument, "World", "delivery can be checked on CPU devices only",
                "use devices such as cpu:2, or leave MESHPOST_CHECK empty");
  world_communicator_ = make_communicator(Communicator::Shape::world, 1);
  device_communicator_ = make_communicator(Communicator::Shape::device, layout_.device_count());
  tags_ = make_window({world_communicator_, 1, 0, {}, {}, Tags{default_tags}, "the world's tags"});
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
    std::memset(memory.log_records.data(), 0, memory.log_records.size());
    std::memset(memory.log_tail.data(), 0, memory.log_tail.size());
    std::memset(memory.timers.data(), 0, memory.timers.size());
    device->fill(memory.log_head.data(), 0, memory.log_head.size());
    run_memory_.push_back(std::move(memory));
  }
  supervisor_ = std::thread([this] { supervise(); });
}

WorldState::~WorldState() {
  {
    std::scoped_lock const lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  supervisor_.join();
}

void WorldState::guard(std::string_view operation) const {
  refuse_after_fork(operation);
  if (inside_kernel())
    throw Error(Kind::misuse, std::string(operation), "it was called from inside a kernel",
                "call it from the host, before or after the run");
}

u64 WorldState::upload(void const* data, u64 bytes) {
  u64 const offset = heap_.allocate(bytes);
  for (u32 d = 0; d < layout_.device_count(); ++d)
    layout_.devices[d]->transfer(heap_.at(d, offset), data, Bytes{bytes});
  return offset;
}

Communicator WorldState::make_communicator(Communicator::Shape shape, u32 groups) {
  Communicator made;
  made.world = number_;
  made.number = next_communicator_++;
  made.shape = shape;
  u64 const ranks = layout_.ranks();
  made.slot = static_cast<u32>(std::clamp<u64>(gather_bytes / (2 * ranks) / 256 * 256, 256, 4096));
  made.barriers = heap_.allocate_counters(std::max(groups, 1u) * sizeof(BarrierWords));
  made.generations = heap_.allocate_counters(layout_.ranks_per_device * sizeof(u32));
  made.gather = heap_.allocate(2 * ranks * made.slot);
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
  auto const tables = make_groups(colors, layout_.ranks_per_device);
  Communicator made = make_communicator(Communicator::Shape::split, tables.group_count);
  made.groups = upload(tables.groups.data(), tables.groups.size() * sizeof(Group));
  made.members = upload(tables.members.data(), tables.members.size() * sizeof(u32));
  made.places = upload(tables.places.data(), tables.places.size() * sizeof(u32));
  colors_[made.number] = std::move(colors);
  return made;
}

std::vector<Part> WorldState::place_extents(World::WindowSpec const& spec, WindowRecord& record) {
  u64 elements = 0;
  for (auto const& extent : spec.extents)
    elements = std::max(elements, extent.offset + extent.count);
  record.data_bytes = elements * spec.element_bytes;
  record.info.offset = heap_.allocate(record.data_bytes);
  std::vector<Part> parts;
  for (u32 rank = 0; rank < spec.extents.size(); ++rank) {
    char* const block = heap_.at(layout_.device_of(rank), record.info.offset);
    parts.push_back(
        {block + spec.extents[rank].offset * spec.element_bytes, spec.extents[rank].count});
  }
  return parts;
}

void WorldState::check_memory(World::WindowSpec const& spec) {
  backend(layout_.devices.front()->kind()).connect(layout_.devices);
  for (u32 rank = 0; rank < spec.memory.size(); ++rank) {
    auto const& part = spec.memory[rank];
    if (part.count == 0) continue;
    auto const& device = layout_.devices[layout_.device_of(rank)];
    auto const where = device->locate(part.data);
    auto const refuse = [&](std::string cause) {
      throw Error(Kind::bad_argument, "register_memory",
                  fmt::format("rank {}'s part at {}: {}", rank, part.data, cause),
                  fmt::format("give memory of {}", device->name()));
    };
    if (!part.data) refuse(fmt::format("{} elements at a null pointer", part.count));
    if (!where.usable || where.kind != MemoryKind::device)
      refuse(fmt::format("it is not memory of {}", device->name()));
    if (part.count > where.extent / spec.element_bytes)
      refuse(fmt::format("{} bytes are named, its allocation ends after {}",
                         part.count * spec.element_bytes, where.extent));
  }
}

WindowInfo WorldState::make_window(World::WindowSpec const& spec) {
  guard("window");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  u64 const ranks = layout_.ranks();
  auto const refuse = [](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, "window", std::move(cause), std::move(remedy));
  };
  if (spec.communicator.world != number_)
    refuse(fmt::format("the communicator belongs to world {}, not to {}", spec.communicator.world,
                       number_),
           "use a communicator of the same World");
  constexpr u32 most_tags = 1u << 16;
  if (spec.tags.value > most_tags)
    refuse(
        fmt::format("{} tags were asked for; a window has at most {}", spec.tags.value, most_tags),
        "use fewer tags");
  for (u64 const given : {spec.extents.size(), spec.memory.size()})
    if (given != 0 && given != ranks)
      refuse(fmt::format("{} parts were given for {} ranks", given, ranks),
             "give one for each rank of the world");
  u64 const most = heap_.stride() / spec.element_bytes;
  for (auto const& extent : spec.extents)
    if (extent.offset > most || extent.count > most - extent.offset)
      refuse(fmt::format("a part of {} elements at {} is larger than a device", extent.count,
                         extent.offset),
             "use smaller parts");
  if (spec.count > most / layout_.ranks_per_device)
    throw Error(
        Kind::out_of_memory, "window",
        fmt::format(
            "{} ranks a device with {} elements of {} bytes each don't fit in a device's {} bytes",
            layout_.ranks_per_device, spec.count, spec.element_bytes, heap_.stride()),
        "use smaller windows");

  WindowRecord record;
  WindowInfo& info = record.info;
  info.world = number_;
  info.number = next_window_;
  info.communicator = spec.communicator;
  info.tags = spec.tags.value;
  info.counter_pitch = counter_pitch(info.tags);
  record.element_bytes = spec.element_bytes;
  record.name = spec.name.empty() ? fmt::format("window {}", info.number)
                                  : fmt::format("window '{}'", spec.name);
  if (!spec.memory.empty()) {
    check_memory(spec);
    record.parts = spec.memory;
  } else if (!spec.extents.empty()) {
    record.parts = place_extents(spec, record);
  } else {
    info.count = spec.count;
    info.pitch = padded(spec.count * spec.element_bytes, 128);
    record.data_bytes = info.pitch * layout_.ranks_per_device;
    if (record.data_bytes != 0) info.offset = heap_.allocate(record.data_bytes);
  }
  for (u32 d = 0; d < layout_.device_count() && record.data_bytes != 0; ++d)
    layout_.devices[d]->fill(heap_.at(d, info.offset), 0, Bytes{record.data_bytes});
  if (!record.parts.empty())
    info.parts = upload(record.parts.data(), record.parts.size() * sizeof(Part));
  record.counter_bytes = u64{info.counter_pitch} * layout_.ranks_per_device;
  if (record.counter_bytes != 0) info.counters = heap_.allocate_counters(record.counter_bytes);
  if (info.parts == 0 && info.communicator.shape == Communicator::Shape::world)
    info.uniform_world = number_;
  ++next_window_;
  return windows_.emplace(info.number, std::move(record)).first->second.info;
}

WindowRecord& WorldState::record_of(WindowInfo const& info, std::string_view operation) {
  auto const found = windows_.find(info.number);
  if (info.world != number_ || found == windows_.end())
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("window {} of world {} does not exist", info.number, info.world),
                "use windows until they are freed, with the World that made them");
  return found->second;
}

void WorldState::free_window(WindowInfo const& info) {
  guard("free");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  auto const& record = record_of(info, "free");
  if (record.data_bytes != 0) heap_.release(info.offset, record.data_bytes);
  if (info.parts != 0) heap_.release(info.parts, record.parts.size() * sizeof(Part));
  if (record.counter_bytes != 0) heap_.release_counters(info.counters, record.counter_bytes);
  windows_.erase(info.number);
}

void WorldState::transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
                          void* target, void const* source, u64 count) {
  auto const operation = target ? "read" : "write";
  guard(operation);
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  auto const& record = record_of(window, operation);
  if (rank >= layout_.ranks())
    throw Error(
        Kind::bad_argument, operation,
        fmt::format("rank {} does not exist in a world of {} ranks", rank.value, layout_.ranks()),
        fmt::format("use ranks from 0 to {}", layout_.ranks() - 1));
  u32 const device = layout_.device_of(rank);
  u64 const limit = record.parts.empty() ? record.info.count : record.parts[rank].count;
  if (offset > limit || count > limit - offset)
    throw Error(Kind::bad_argument, fmt::format("{} {}", operation, record.name),
                fmt::format("elements {} to {} of rank {} were named; it has {}", offset,
                            offset + count, rank.value, limit),
                "stay inside the part");
  if (count == 0) return;
  auto* const part =
      record.parts.empty()
          ? heap_.at(device,
                     record.info.offset + u64{rank % layout_.ranks_per_device} * record.info.pitch)
          : static_cast<char*>(record.parts[rank].data);
  char* const at = part + offset * element_bytes;
  layout_.devices[device]->transfer(target ? target : at, target ? at : source,
                                    Bytes{count * element_bytes});
}

u64 WorldState::part_count(WindowInfo const& window, RankId rank) {
  std::scoped_lock const lock(mutex_);
  auto const& record = record_of(window, "read");
  if (rank >= layout_.ranks()) return 0;  // transfer refuses it, with the numbers
  return record.parts.empty() ? record.info.count : record.parts[rank].count;
}

std::string WorldState::window_name(u32 number) {
  auto const found = windows_.find(number);
  return found == windows_.end() ? fmt::format("window {}", number) : found->second.name;
}

std::string WorldState::communicator_name(u32 number) const {
  if (number == world_communicator_.number) return "the world";
  if (number == device_communicator_.number) return "its device";
  return fmt::format("communicator {}", number);
}

std::shared_ptr<RunRecord> WorldState::start(KernelImage const& image, void const* kernel,
                                             std::size_t bytes, Launch const& launch) {
  guard(fmt::format("launch {}", image.name));
  if (image.abi != abi_version)
    throw Error(Kind::version_mismatch, fmt::format("launch {}", image.name),
                fmt::format("it was compiled for ABI version {}, this library has {}", image.abi,
                            abi_version),
                "compile the kernel with the headers of the installed library");
  if (Dim3 const t = launch.threads; t.x != 0) {
    u32 const most = layout_.devices.front()->info().max_threads;
    auto const fits = [most](u64 threads) { return threads >= 1 && threads <= most; };
    if (!fits(t.x) || !fits(u64{t.x} * t.y) || !fits(u64{t.x} * t.y * t.z))
      throw Error(Kind::bad_argument, fmt::format("launch {}", image.name),
                  fmt::format("{} x {} x {} threads a rank were asked for; there may be 1 to {}",
                              t.x, t.y, t.z, most),
                  "use fewer threads, at least one in each direction");
  }
  // A stream of a GPU that waits for the run holds up driver calls which the run needs to begin:
  // seen to hang.
  if (!launch.streams.empty() && layout_.devices.front()->kind() == "cuda")
    throw Error(
        Kind::bad_environment, fmt::format("launch {}", image.name),
        "Launch::streams does not work on GPUs yet",
        "synchronise your streams before the launch, and wait for the run before you go on");
  auto record = std::make_shared<RunRecord>();
  record->image = image;
  record->kernel.resize((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  std::memcpy(record->kernel.data(), kernel, bytes);
  record->launch = launch;
  for (auto* const stream : launch.streams) record->before.push_back(stream->record());
  {
    std::scoped_lock const lock(mutex_);
    queue_.push_back(record);
    changed_.notify_all();
  }
  for (auto* const stream : launch.streams) stream->wait(std::make_shared<RunEnd>(record));
  return record;
}

void WorldState::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return queue_.empty() && !running_; });
}

void WorldState::supervise() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto const record = queue_.front();
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    supervise_run(*this,
                  *record);  // while running_, nobody else touches heap, windows and run memory
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace meshpost::detail
