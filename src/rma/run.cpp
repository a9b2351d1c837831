#include "meshpost/rma/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "meshpost/base/events.hpp"
#include "meshpost/trace/log.hpp"
#include "meshpost/trace/timeline.hpp"
#include "rma/delivery_ledger.hpp"
#include "rma/failure.hpp"
#include "rma/watch.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {
namespace {

using Clock = std::chrono::steady_clock;

// One launch at a time on a device, whichever World it comes from: two kernels that each need all
// their ranks resident could otherwise wait for each other. Taken in the devices' order.
class DeviceLocks {
 public:
  explicit DeviceLocks(std::vector<std::shared_ptr<Device>> devices) {
    std::ranges::sort(
        devices, {}, [](auto const& device) { return std::pair(device->kind(), device->index()); });
    for (auto const& device : devices) locks_.emplace_back(mutex_of(device->name()));
  }

 private:
  static std::mutex& mutex_of(std::string const& name) {
    static std::mutex guard;
    static auto* const all = new std::map<std::string, std::mutex>;
    std::scoped_lock const lock(guard);
    return (*all)[name];
  }
  std::vector<std::unique_lock<std::mutex>> locks_;
};

u64 steady_ns() { return memory::clock_ns(); }

}  // namespace

class RunSupervisor {
 public:
  RunSupervisor(WorldState& world, RunRecord& record)
      : world_(world), record_(record), layout_(world.layout_) {}

  void run() {
    for (auto const& event : record_.before) event->wait();
    DeviceLocks const locks(layout_.devices);
    prepare();
    u64 const begin = steady_ns();
    auto gang = backend(layout_.devices.front()->kind()).launch(spec_);
    Watch watch(*gang, spec_.grids, readers_, deadline());
    auto const ending = watch.until_end();
    u64 const end = steady_ns();
    record_.result.seconds = static_cast<double>(end - begin) * 1e-9;
    gang.reset();
    for (auto& reader : readers_) reader.drain();
    try {
      if (ending.failure)
        throw *ending.failure;  // the device itself: nothing more can be asked of it
      read_counters();
      write_timeline(begin, end);
      if (ending.reason != Ending::Reason::finished) throw_reason(ending);
      if (ledger_) ledger_->finish();
      report_leftovers();
      collect_timings();
      clean_up();
    } catch (...) {
      clean_up_after_failure();
      throw;
    }
  }

 private:
  std::chrono::milliseconds deadline() const {
    return debugger_attached() ? std::chrono::milliseconds(0)
                               : record_.launch.deadline.value_or(world_.options_.deadline);
  }
  std::string trace_file() const {
    return record_.launch.trace.empty() ? world_.options_.trace : record_.launch.trace;
  }

  void prepare() {
    if (world_.options_.check_delivery) ledger_ = make_ledger(layout_.ranks(), describe_address());
    states_.resize(layout_.device_count());
    spec_.image = record_.image;
    spec_.kernel = record_.kernel.data();
    spec_.threads = record_.launch.threads;
    spec_.scratch = record_.launch.scratch;
    spec_.workers = world_.options_.workers;
    spec_.thread_a_rank = record_.launch.thread_a_rank;
    for (u32 d = 0; d < layout_.device_count(); ++d) {
      auto& memory = world_.run_memory_[d];
      auto* const reports = memory.reports.as<RankReport>();
      std::memset(static_cast<void*>(reports), 0, memory.reports.size());
      for (u32 r = 0; r < layout_.ranks_per_device; ++r)
        reports[r].state = static_cast<u32>(RankState::running);
      *memory.control.as<Control>() = {};
      LogRing const ring{memory.log_records.as<LogRecord>(), memory.log_head.as<u32>(),
                         memory.log_tail.as<u32>()};
      states_[d] = {abi_version,
                    world_.number_,
                    world_.heap_.base(),
                    world_.heap_.stride(),
                    d,
                    layout_.device_count(),
                    layout_.ranks_per_device,
                    layout_.ranks(),
                    RunState::reciprocal_of(layout_.ranks_per_device),
                    0,
                    spec_.scratch,
                    reports,
                    memory.control.as<Control>(),
                    world_.tags_,
                    world_.device_communicator_,
                    ring,
                    trace_buffer(d),
                    {memory.timers.as<u64>()},
                    ledger_.get(),
                    record_.launch.user};
      readers_.emplace_back(ring);
      spec_.grids.push_back({layout_.devices[d], layout_.ranks_per_device,
                             d * layout_.ranks_per_device, state_of(d), reports,
                             memory.control.as<Control>()});
    }
  }

  /// The state as the device's kernel takes it.
  void const* state_of(u32 device) {
    if (spec_.image.arguments == Arguments::kernel_and_state) return &states_[device];
    auto& memory = world_.run_memory_[device];
    auto& owner = *layout_.devices[device];
    if (!memory.state.data())
      memory.state = owner.allocate(Bytes{sizeof(RunState)}, MemoryKind::device);
    owner.transfer(memory.state.data(), &states_[device], memory.state.size());
    return memory.state.data();
  }

  TraceBuffer trace_buffer(u32 device) {
    if (trace_file().empty()) return {};
    auto& memory = world_.run_memory_[device];
    auto& owner = *layout_.devices[device];
    u32 const capacity = std::max(1u, world_.options_.trace_events);
    u64 const ranks = layout_.ranks_per_device;
    if (!memory.trace_events.data()) {
      memory.trace_events =
          owner.allocate(Bytes{ranks * capacity * sizeof(TraceEvent)}, MemoryKind::device);
      memory.trace_used = owner.allocate(Bytes{ranks * sizeof(u32)}, MemoryKind::device);
    }
    owner.fill(memory.trace_used.data(), 0, memory.trace_used.size());
    return {memory.trace_events.as<TraceEvent>(), memory.trace_used.as<u32>(), capacity};
  }

  // -- after the end

  void read_counters() {
    for (u32 d = 0; d < layout_.device_count(); ++d) {
      counters_.emplace_back();
      for (auto const& range : world_.heap_.counter_ranges()) {
        auto& copy = counters_[d][range.offset];
        copy.resize(range.size / sizeof(u32));
        layout_.devices[d]->transfer(copy.data(), world_.heap_.at(d, range.offset),
                                     Bytes{range.size});
      }
    }
  }
  /// A word of a device's counters, as it was when the run ended.
  u32 counter(u32 device, u64 offset) const {
    auto after = counters_[device].upper_bound(offset);
    if (after == counters_[device].begin()) return 0;
    --after;
    u64 const index = (offset - after->first) / sizeof(u32);
    return index < after->second.size() ? after->second[index] : 0;
  }

  template <class Visit>
  void each_counter(Visit&& visit) const {
    for (auto const& [number, window] : world_.windows_)
      for (u32 rank = 0; rank < layout_.ranks(); ++rank)
        for (u32 tag = 0; tag < window.info.tags; ++tag) {
          u64 const at = window.info.counters +
                         u64{rank % layout_.ranks_per_device} * window.info.counter_pitch +
                         tag * sizeof(u32);
          visit(window, rank, tag, layout_.device_of(rank), at);
        }
  }

  void report_leftovers() {
    each_counter([&](WindowRecord const& window, u32 rank, u32 tag, u32 device, u64 at) {
      u32 const count = counter(device, at);
      if (count == 0) return;
      u32 const sender = counter(device, at + window.info.counter_pitch / 2) - 1;
      record_.result.leftovers.push_back(
          {window.name, RankId{rank}, Tag{tag}, count, RankId{sender}});
    });
    auto const& left = record_.result.leftovers;
    if (left.empty()) return;
    std::string text =
        fmt::format("{} ended with notifications that nobody consumed:", record_.image.name);
    for (std::size_t i = 0; i < std::min<std::size_t>(left.size(), 4); ++i)
      text +=
          fmt::format(" rank {} has {} of tag {} in {}, the last from rank {};", left[i].rank.value,
                      left[i].count, left[i].tag.value, left[i].window, left[i].sender.value);
    if (left.size() > 4) text += fmt::format(" and {} more;", left.size() - 4);
    event_sink()->warning(text + " wait for them, or don't send them");
  }

  void collect_timings() {
    for (u32 d = 0; d < layout_.device_count(); ++d) {
      record_.result.timings.emplace_back();
      auto const& timers = states_[d].timers;
      for (u32 k = 0; k < TimerBuffer::capacity; ++k) {
        u64 first = ~u64{0}, last = 0;
        for (u32 r = 0; r < layout_.ranks_per_device; ++r) {
          auto* const times = timers.interval(r, k);
          if (times[0] != 0) first = std::min(first, times[0]);
          last = std::max(last, times[1]);
        }
        if (last == 0) break;  // the rest was never stopped
        record_.result.timings.back().push_back(static_cast<double>(last - first) * 1e-9);
      }
      std::memset(world_.run_memory_[d].timers.data(), 0, world_.run_memory_[d].timers.size());
    }
  }

  void write_timeline(u64 begin, u64 end) {
    auto const file = trace_file();
    if (file.empty()) return;
    Timeline timeline{record_.image.name, {}, begin, end, {}};
    for (u32 d = 0; d < layout_.device_count(); ++d) {
      auto& device = *layout_.devices[d];
      auto const& buffer = states_[d].trace;
      i64 const offset = backend(device.kind()).clock_offset(device);
      std::vector<u32> used(layout_.ranks_per_device);
      device.transfer(used.data(), buffer.used, Bytes{used.size() * sizeof(u32)});
      timeline.devices.push_back(device.name());
      for (u32 r = 0; r < used.size(); ++r) {
        TimelineRow row{d, d * layout_.ranks_per_device + r, {}, 0};
        row.events.resize(std::min(used[r], buffer.capacity));
        row.lost = used[r] - row.events.size();
        device.transfer(row.events.data(), buffer.events + u64{r} * buffer.capacity,
                        Bytes{row.events.size() * sizeof(TraceEvent)});
        for (auto& event : row.events) {
          event.begin += static_cast<u64>(offset);
          if (event.end != 0) event.end += static_cast<u64>(offset);
        }
        timeline.rows.push_back(std::move(row));
      }
    }
    std::ofstream out(file);
    out << to_perfetto(timeline);
    out.close();
    if (!out)
      event_sink()->warning(
          fmt::format("the timeline could not be written to '{}'; check the folder", file));
  }

  void clean_up() { world_.heap_.clear_counters(); }

  // A rank that was ended half-way may have left anything behind.
  void clean_up_after_failure() {
    try {
      world_.heap_.clear_counters();
      for (u32 d = 0; d < layout_.device_count(); ++d) {
        auto& memory = world_.run_memory_[d];
        std::memset(memory.log_records.data(), 0, memory.log_records.size());
        std::memset(memory.log_tail.data(), 0, memory.log_tail.size());
        std::memset(memory.timers.data(), 0, memory.timers.size());
        layout_.devices[d]->fill(memory.log_head.data(), 0, memory.log_head.size());
      }
    } catch (Error const&) {  // a device that is broken already; the first error says why
    }
  }

  // -- what to say of a run that was ended

  std::vector<RankView> views(Ending const& ending) const {
    std::vector<RankView> all;
    for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
      u32 const device = layout_.device_of(rank);
      RankReport const& report = spec_.grids[device].reports[rank % layout_.ranks_per_device];
      RankView view{rank,
                    static_cast<RankState>(report.state),
                    report.note,
                    report.observed,
                    report.condition,
                    {},
                    false};
      if (!ending.states.empty() && view.state != RankState::failed)
        view.state = ending.states[rank];
      if (view.state == RankState::waiting || view.state == RankState::asking)
        explain(view, device);
      all.push_back(std::move(view));
    }
    for (auto& view : all)
      if (view.state == RankState::waiting && view.note.operation != Operation::wait &&
          view.note.operation != Operation::wait_until)
        view.could_wake = not_at_barrier(view, all);
    return all;
  }
  void explain(RankView& view, u32 device) const {
    if (view.note.operation == Operation::wait || view.note.operation == Operation::test) {
      auto const window = world_.windows_.find(view.note.window);
      if (window == world_.windows_.end()) return;
      WindowInfo const& info = window->second.info;
      u64 const at = info.counters +
                     u64{view.rank % layout_.ranks_per_device} * info.counter_pitch +
                     view.note.tag * sizeof(u32);
      view.observed = counter(device, at);
      u32 const sender = counter(device, at + info.counter_pitch / 2);
      if (view.note.expected != Note::no_rank) view.could_wake = {view.note.expected};
      else if (sender != 0) view.could_wake = {sender - 1}, view.sent_before = true;
    } else if (view.note.operation == Operation::wait_until) {
      view.observed = 0;
      layout_.devices[device]->transfer(&view.observed, view.condition.word,
                                        Bytes{width(view.condition.type)});
    }
  }
  std::vector<u32> not_at_barrier(RankView const& view, std::vector<RankView> const& all) const {
    std::vector<u32> missing;
    for (auto const& other : all) {
      bool const there =
          other.state == RankState::waiting && other.note.operation == view.note.operation &&
          other.note.window == view.note.window && other.note.count == view.note.count;
      if (!there && other.rank != view.rank && same_group(view.rank, other.rank, view.note.window))
        missing.push_back(other.rank);
    }
    return missing;
  }
  bool same_group(u32 one, u32 other, u32 communicator) const {
    if (communicator == world_.world_communicator_.number) return true;
    if (communicator == world_.device_communicator_.number)
      return layout_.device_of(one) == layout_.device_of(other);
    auto const colors = world_.colors_.find(communicator);
    return colors != world_.colors_.end() && colors->second[one] == colors->second[other];
  }

  std::string rank_name(u32 rank) const {
    return fmt::format("rank {} ({})", rank, layout_.devices[layout_.device_of(rank)]->name());
  }
  std::string who_waits(std::vector<RankView> const& all) const {
    auto const name = [this](u32 number) { return world_.window_name(number); };
    return wait_report(all, name, [this](u32 number) { return world_.communicator_name(number); });
  }

  [[noreturn]] void throw_reason(Ending const& ending) {
    auto const all = views(ending);
    auto const waits = who_waits(all);
    auto const behind = waits.empty() ? "" : "\n  " + waits;
    for (auto const& view : all) {
      if (view.state != RankState::failed) continue;
      RankReport const& report =
          spec_.grids[layout_.device_of(view.rank)].reports[view.rank % layout_.ranks_per_device];
      Names const names{record_.image.name, [this](u32 rank) { return rank_name(rank); }};
      auto const error = to_error(report, view.rank, names);
      throw Error(error.kind(), error.operation(), error.cause() + behind, error.remedy());
    }
    if (ending.reason == Ending::Reason::deadlock)
      throw Error(
          Kind::deadlock, fmt::format("run {}", record_.image.name),
          fmt::format("every rank that has not ended waits, and nobody is left to notify it{}",
                      behind),
          "send what is awaited before waiting, or wait for less");
    throw Error(
        Kind::deadline, fmt::format("run {}", record_.image.name),
        fmt::format("no rank got on for {:.3g} s while others waited{}",
                    static_cast<double>(deadline().count()) * 1e-3, behind),
        "if the kernel computes that long, raise MESHPOST_DEADLINE (seconds) or Launch::deadline");
  }

  std::function<std::string(void const*)> describe_address() const {
    return [this](void const* address) {
      auto const* const at = static_cast<char const*>(address);
      for (auto const& [number, window] : world_.windows_)
        for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
          auto const* const part =
              window.parts.empty()
                  ? world_.heap_.at(layout_.device_of(rank),
                                    window.info.offset +
                                        u64{rank % layout_.ranks_per_device} * window.info.pitch)
                  : static_cast<char const*>(window.parts[rank].data);
          u64 const bytes = (window.parts.empty() ? window.info.count : window.parts[rank].count) *
                            window.element_bytes;
          if (at >= part && at < part + bytes)
            return fmt::format("{} of rank {} at element {}", window.name, rank,
                               static_cast<u64>(at - part) / window.element_bytes);
        }
      return fmt::format("address {}", address);
    };
  }

  WorldState& world_;
  RunRecord& record_;
  Layout const& layout_;
  GangSpec spec_;
  std::vector<RunState> states_;
  std::vector<LogReader> readers_;
  std::shared_ptr<DeliveryLedger> ledger_;
  std::vector<std::map<u64, std::vector<u32>>> counters_;  // by device: offset -> words
};

void supervise_run(WorldState& world, RunRecord& record) {
  std::optional<Error> error;
  auto const operation = fmt::format("run {}", record.image.name);
  try {
    RunSupervisor(world, record).run();
  } catch (Error const& known) {
    error = known;
  } catch (std::bad_alloc const&) {
    error.emplace(Kind::out_of_memory, operation, "the host's memory is used up",
                  "use fewer ranks or threads");
  } catch (std::exception const& unknown) {
    error.emplace(Kind::device_failed, operation, unknown.what(),
                  "if it is no limit of this host's, report it");
  }
  std::vector<std::function<void()>> actions;
  {
    std::scoped_lock const lock(record.mutex);
    record.error = error;
    record.done = true;
    actions.swap(record.at_end);
    record.changed.notify_all();
  }
  for (auto const& action : actions) action();
}

}  // namespace meshpost::detail
