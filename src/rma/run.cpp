#include "meshpost/rma/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/caught.hpp"
#include "base/host_places.hpp"
#include "meshpost/trace/log.hpp"
#include "rma/delivery_ledger.hpp"
#include "rma/device_locks.hpp"
#include "rma/diagnosis.hpp"
#include "rma/run_end.hpp"
#include "rma/run_part.hpp"
#include "rma/run_timeline.hpp"

namespace meshpost::detail {
namespace {

using Clock = std::chrono::steady_clock;

u64 steady_ns() { return memory::clock_ns(); }

}  // namespace

class RunSupervisor {
 public:
  RunSupervisor(WorldState& world, std::shared_ptr<RunRecord> const& record)
      : world_(world),
        kept_(record),
        record_(*record),
        layout_(world.layout()),
        peers_(world.peers()),
        proxy_(world.proxy()) {}

  ~RunSupervisor() {
    try {
      if (proxy_) proxy_->stop();
    } catch (...) {
      return;  // settle() has not come so far: an error is on its way already
    }
  }
  RunSupervisor(RunSupervisor const&) = delete;
  RunSupervisor& operator=(RunSupervisor const&) = delete;

  void run() {
    // Before the locks: what they hold may be a run of another World on these devices.
    auto const not_ready = wait_for_streams();
    auto const turn = take_turn();
    // From here on everybody's counters are clear.
    gpus_have_lanes_ = LaneKeeper::agreed(peers_.gather(describe_launch(), [&] {
      if (not_ready) throw Error(*not_ready);
      return world_.lanes().vote(spec(kind_of_gpus(), false), layout_, world_.heap());
    }));
    DeviceLocks const locks(layout_.devices, peers_);
    u32 const number = world_.next_run();
    // From here on every process takes part to the end: what fails in one of them ends the run in
    // all, and settle() tells them why.
    if (!peers_.alone()) council_.emplace(peers_, number, deadline());
    auto const ending = run_ranks(number);
    try {
      if (!proxy_) record_.end();  // else what they have sent may still be on its way
      settle(ending);
      record_.end();
      world_.heap().clear_counters();
    } catch (...) {
      clean_up_after_failure(world_, states_);
      throw;
    }
  }

  /// Whether a thread that hangs may still touch what is here, when run() has thrown.
  bool must_be_kept() const { return proxy_ && proxy_->hangs() && !gangs_.empty(); }

 private:
  // Runs of Worlds that span processes follow each other in the order that process 0 sees to: else
  // two processes could begin with different ones, and each wait for the other's devices.
  std::unique_lock<std::mutex> take_turn() const {
    static auto* const turn = new std::mutex;
    if (peers_.alone() || peers_.number() != 0) return {};
    return std::unique_lock(*turn);
  }

  std::optional<Error> wait_for_streams() const try {
    if (!world_.queues_runs())
      for (auto const& event : record_.before) event->wait();
    return std::nullopt;
  } catch (...) {
    return caught(operation());
  }

  std::string operation() const { return fmt::format("run {}", record_.image.name); }

  std::string describe_launch() const {
    auto const& threads = record_.launch.threads;
    return fmt::format("launch {} with {} x {} x {} threads a rank", record_.image.name, threads.x,
                       threads.y, threads.z);
  }

  // Whatever fails, the ranks of all processes have ended when it returns. \throws Error(peer_lost)
  // if the proxy hangs
  Ending run_ranks(u32 number) {
    std::vector<Crew> crews;
    std::optional<Error> not_launched;
    begin_ = steady_ns();
    for (u32 d = 0; d < layout_.own_count(); ++d) states_.push_back(bare_state(d));
    try {
      if (proxy_) proxy_->follow_heap(), proxy_->start(number);
      prepare();
      crews.reserve(specs_.size());  // a gang that runs is watched, whatever fails
      gangs_.reserve(specs_.size());
      for (auto const& spec : specs_) {
        gangs_.push_back(backend(spec.grids.front().device->kind()).launch(spec));
        crews.push_back({gangs_.back().get(), spec.grids});
      }
      if (world_.queues_runs() && !record_.launch.streams.empty()) {
        std::vector<std::shared_ptr<Event>> ends;
        for (auto const& gang : gangs_) std::ranges::move(gang->ends(), std::back_inserter(ends));
        record_.launch_is_done(std::move(ends));
      }
    } catch (...) {
      not_launched = caught(operation());  // the others have launched, or soon will: end them
      if (council_) council_->poison(Reason::failed);
    }
    Watch watch(crews, readers_, deadline(), council_ ? &*council_ : nullptr, proxy_);
    if (not_launched) watch.poison(Reason::failed);
    auto ending = until_end(watch, not_launched);
    // Before their stacks are gone: an answer to a rank that was ended has nowhere to go.
    if (proxy_ && ending.reason != Reason::finished) proxy_->abandon();
    gangs_.clear();
    end_ = steady_ns();
    record_.result.seconds = static_cast<double>(end_ - begin_) * 1e-9;
    if (not_launched) ending.failure = not_launched;
    return ending;
  }

  // What it throws ends the run; but its ranks run on until they have seen that.
  Ending until_end(Watch& watch, std::optional<Error>& failure) {
    for (;;) try {
        return watch.until_end();
      } catch (...) {
        if (proxy_ && proxy_->hangs()) throw;
        if (!failure) failure = caught(operation());
        if (council_) council_->poison(Reason::failed);
        watch.poison(Reason::failed);
      }
  }

  // What becomes of the run, now that all ranks have ended: the same in all processes.
  void settle(Ending const& ending) {
    RunPart own{ending.reason, ending.failure};
    std::optional<Evidence> evidence;
    // What fails here fails in this process only, perhaps: the others are told.
    auto const attempt = [&](auto const& work) {
      try {
        work();
      } catch (...) {
        if (!own.error) own.error = caught(operation());
      }
    };
    attempt([&] {
      if (proxy_ && ending.reason == Reason::finished) proxy_->settle(record_.image.name);
      if (proxy_ && ending.reason != Reason::finished && ending.reason != Reason::lost)
        proxy_->come_to_rest(record_.image.name, patience_at_rest(ending.reason));
    });
    attempt([&] {
      if (proxy_) proxy_->stop();
    });
    attempt([&] {
      if (own.error) return;  // the device itself is broken: nothing more can be asked of it
      drain_lanes(specs_, states_, ending.reason == Reason::finished);
      evidence.emplace(world_, all_grids(), ending);
      // Not of a job that has lost a process: its launcher ends it soon, and the error is to be
      // heard.
      if (auto const file = trace_file(); !file.empty() && ending.reason != Reason::lost)
        write_timeline(file, {record_.image.name, layout_, states_, cores_, begin_, end_});
      if (own.reason == Reason::finished)
        own.leftovers =
            evidence->counters().leftovers(RunPart::most_leftovers, own.leftovers_left_out);
      own.timings = collect_timings(world_, states_);
      if (council_ && own.reason != Reason::finished && own.reason != Reason::lost)
        own.evidence = evidence->pack();
    });
    if (own.reason == Reason::lost && !own.error) throw diagnosis(*evidence, own.reason);
    auto const parts = share(own);
    auto reason = Reason::finished;
    for (u32 process = 0; process < parts.size(); ++process) {
      if (parts[process].error) throw peers_.of_process(process, *parts[process].error);
      reason = std::max(reason, parts[process].reason);
      auto& result = record_.result;
      for (auto const& left : parts[process].leftovers) result.leftovers.push_back(left);
      result.leftovers_left_out += parts[process].leftovers_left_out;
      for (auto const& device : parts[process].timings) result.timings.push_back(device);
      if (process != peers_.number() && evidence && !parts[process].evidence.empty())
        evidence->add(parts[process].evidence);
    }
    if (reason != Reason::finished) throw diagnosis(*evidence, reason);
    if (ledger_) ledger_->finish();
    if (peers_.number() == 0) report_leftovers(record_);
  }

  // Where all have stood still for the deadline, what has not come by then will not.
  std::chrono::milliseconds patience_at_rest(Reason reason) const {
    if (reason == Reason::deadline) return std::chrono::milliseconds(100);
    if (peers_.alone())
      return std::chrono::milliseconds(0);  // without end: only devices are waited for
    return peers_.processes().job().silence;
  }

  std::vector<RunPart> share(RunPart const& own) const {
    if (!council_) return {own};
    std::vector<RunPart> parts;
    for (auto const& bytes : peers_.exchange(fmt::format("end {}", record_.image.name), own.pack()))
      parts.push_back(RunPart::unpack(bytes));
    return parts;
  }

  Error diagnosis(Evidence const& evidence, Reason reason) const {
    return diagnose({world_, record_, evidence, deadline()}, reason);
  }

  // Each process writes a file of its own.
  std::string trace_file() const {
    auto file = world_.trace_file(record_.launch);
    if (file.empty() || peers_.alone()) return file;
    std::filesystem::path path(file);
    auto const name =
        fmt::format("{}-{}{}", path.stem().string(), peers_.number(), path.extension().string());
    return path.replace_filename(name).string();
  }

  std::chrono::milliseconds deadline() const {
    return debugger_attached() ? std::chrono::milliseconds(0)
                               : record_.launch.deadline.value_or(world_.options().deadline);
  }

  // What is known of it before anything can fail; so whatever does, its lanes can be cleaned up.
  RunState bare_state(u32 own) const {
    RunState state;
    state.world = world_.number();
    state.heap = world_.heap().spaces().base(own);
    state.stride = world_.heap().spaces().stride(own);
    state.device = layout_.first_device + own;
    state.devices = layout_.device_count();
    state.ranks_per_device = layout_.ranks_per_device;
    state.ranks = layout_.ranks();
    state.reciprocal = RunState::reciprocal_of(layout_.ranks_per_device);
    state.lanes = world_.lanes().lanes(*layout_.devices[own], gpus_have_lanes_);
    return state;
  }

  void prepare() {
    hooks::at("prepare a run");
    if (world_.options().check_delivery)
      ledger_ = make_ledger(layout_.ranks(),
                            [this](void const* address) { return world_.describe(address); });
    cores_.resize(layout_.own_count());
    for (u32 d = 0; d < layout_.own_count(); ++d) {
      auto& memory = world_.run_memory(d);
      auto* const reports = memory.reports.as<RankReport>();
      std::memset(static_cast<void*>(reports), 0, memory.reports.size());
      for (u32 r = 0; r < layout_.ranks_per_device; ++r)
        reports[r].state = static_cast<u32>(RankState::running);
      *memory.control.as<Control>() = {};
      LogRing const ring{memory.log_records.as<LogRecord>(), memory.log_head.as<u32>(),
                         memory.log_tail.as<u32>()};
      auto& state = states_[d];
      state.scratch = record_.launch.scratch;
      state.reports = reports;
      state.control = memory.control.as<Control>();
      state.tags = world_.tags();
      state.device_communicator = world_.device_communicator();
      state.log = ring;
      state.trace = trace_buffer(d);
      state.timers = {memory.timers.as<u64>()};
      state.ledger = ledger_.get();
      state.user = record_.launch.user;
      if (proxy_) state.posts = proxy_->ring(d), state.mail = proxy_->mailbox(d);
      state.freed = world_.freed_windows(d);
      readers_.emplace_back(ring);
      auto const& device = layout_.devices[d];
      if (states_[d].trace.events && device->in_host_memory())
        cores_[d] = CoreRecord::with_room(layout_.ranks_per_device, states_[d].trace.capacity);
      if (specs_.empty() || specs_.back().grids.front().device->kind() != device->kind())
        specs_.push_back(spec(device->kind(), !device->in_host_memory() && gpus_have_lanes_));
      specs_.back().grids.push_back({device, layout_.ranks_per_device,
                                     (layout_.first_device + d) * layout_.ranks_per_device,
                                     state_of(d), reports, memory.control.as<Control>(),
                                     cores_[d].ranks.empty() ? nullptr : &cores_[d]});
    }
  }

  // The only kind if there are none.
  std::string_view kind_of_gpus() const {
    auto const gpu = std::ranges::find_if_not(layout_.devices, &Device::in_host_memory);
    return gpu == layout_.devices.end() ? "cpu" : (*gpu)->kind();
  }

  // Without its devices. `lanes`: of GPUs that have some.
  GangSpec spec(std::string_view kind, bool lanes) const {
    GangSpec spec;
    spec.crew = world_.crew(kind);
    spec.image = record_.image;
    if (lanes) spec.image.cuda = spec.image.cuda_lanes;
    spec.kernel = record_.kernel.data();
    spec.threads = record_.launch.threads;
    spec.scratch = record_.launch.scratch;
    spec.workers = world_.options().workers;
    spec.thread_a_rank = record_.launch.thread_a_rank;
    if (proxy_) {
      spec.help = [proxy = proxy_] { return proxy->help(); };
      spec.withdraw = [proxy = proxy_] { proxy->withdraw(); };
    }
    if (world_.lanes().size() != 0)
      spec.has_news = [](void const* state, u32 rank) {
        return lanes_have_news(*static_cast<RunState const*>(state), rank);
      };
    spec.shared = !peers_.alone() || proxy_;
    spec.neighbours = peers_.count();
    spec.sharers = layout_.sharers;
    if (world_.queues_runs()) spec.after = record_.before;
    return spec;
  }

  std::vector<Grid> all_grids() const {
    std::vector<Grid> grids;
    for (auto const& spec : specs_) grids.insert(grids.end(), spec.grids.begin(), spec.grids.end());
    return grids;
  }

  /// The state as the device's kernel takes it.
  void const* state_of(u32 device) {
    if (auto* const side_by_side = world_.split_states())
      return &(side_by_side[device] = states_[device]);
    if (record_.image.arguments == Arguments::kernel_and_state) return &states_[device];
    auto& memory = world_.run_memory(device);
    layout_.devices[device]->write(memory.state.data(), &states_[device], memory.state.size());
    return memory.state.data();
  }

  TraceBuffer trace_buffer(u32 device) {
    if (world_.trace_file(record_.launch).empty()) return {};
    auto& memory = world_.run_memory(device);
    auto& owner = *layout_.devices[device];
    u32 const capacity = std::max(1u, world_.options().trace_events);
    u64 const ranks = layout_.ranks_per_device;
    if (!memory.trace_events.data()) {
      memory.trace_events =
          owner.allocate(Bytes{ranks * capacity * sizeof(TraceEvent)}, MemoryKind::device);
      memory.trace_used = owner.allocate(Bytes{ranks * sizeof(u32)}, MemoryKind::device);
    }
    owner.fill(memory.trace_used.data(), 0, memory.trace_used.size());
    return {memory.trace_events.as<TraceEvent>(), memory.trace_used.as<u32>(), capacity};
  }

  WorldState& world_;
  std::shared_ptr<RunRecord> kept_;  // record_, which may have to live as long as this
  RunRecord& record_;
  Layout const& layout_;
  Peers const& peers_;
  Proxy* const proxy_;              // where some processes are out of reach
  std::optional<Council> council_;  // where other processes take part
  bool gpus_have_lanes_ = false;
  u64 begin_ = 0, end_ = 0;
  std::vector<GangSpec> specs_;  // a kind of device each
  std::vector<RunState> states_;
  std::vector<CoreRecord> cores_;  // of each device, if there is a timeline to write
  std::vector<LogReader> readers_;
  std::shared_ptr<DeliveryLedger> ledger_;
  std::vector<std::unique_ptr<Gang>> gangs_;  // while they run
};

void supervise_run(WorldState& world, std::shared_ptr<RunRecord> const& shared) {
  auto& record = *shared;
  std::optional<Error> error;
  auto const keep = [](RunSupervisor* run) {
    if (run->must_be_kept()) net::keep_for_ever(run);
    else delete run;
  };
  try {
    std::unique_ptr<RunSupervisor, decltype(keep)> const run(new RunSupervisor(world, shared),
                                                             keep);
    run->run();
  } catch (...) {
    error = caught(fmt::format("run {}", record.image.name));
  }
  record.end();
  std::scoped_lock const lock(record.mutex);
  record.error = error;
  record.done = true;
  record.changed.notify_all();
}

}  // namespace meshpost::detail
