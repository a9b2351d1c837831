// The state of a run that the devices get.
#include <algorithm>

#include "base/host_hooks.hpp"
#include "rma/runs/launching/run.hpp"

namespace meshpost::detail {

// The part that is known before anything can fail. So after any failure, the run's lanes can be
// cleaned up.
RunState RunSupervisor::bare_state(u32 own) const {
  RunState state;
  state.world = world_.number();
  state.heap = world_.heap().spaces().base(own);
  state.stride = world_.heap().spaces().stride(own);
  state.device = layout_.first_device + own;
  state.devices = layout_.device_count();
  state.ranks_per_device = layout_.ranks_per_device;
  state.ranks = layout_.ranks();
  state.words = world_.resources().words();
  state.news = world_.resources().memory(own).news.as<RunNews>();
  state.reciprocal = RunState::reciprocal_of(layout_.ranks_per_device);
  state.lanes = world_.lanes().lanes(*layout_.devices[own], gpus_have_lanes_);
  return state;
}

void RunSupervisor::prepare() {
  hooks::at("prepare a run");
  if (world_.options().check_delivery)
    ledger_ = make_ledger(layout_.ranks(), [this](void const* address) {
      return world_.windows().describe(address);
    });
  world_.resources().follow_heap();
  if (!world_.trace_file(record_.launch).empty()) trace_ = world_.resources().trace().take();
  u64 const begin_step = ranks_meet_ ? Agreement::begin_step(launch_) : 0;
  u64 const begin_total =
      ranks_meet_ ? world_.agreement().begin(begin_step, layout_.device_count()) : 0;
  for (u32 d = 0; d < layout_.own_count(); ++d) {
    auto& memory = world_.resources().memory(d);
    auto* const reports = memory.reports.as<RankReport>();
    auto const& device = layout_.devices[d];
    // Ranks of GPUs take back what they report. Only a copy of a Rank that tested in vain does not.
    if (!behind_ && (device->in_host_memory() || number_ % 64 == 0)) memory.expect_ranks();
    if (!behind_) memory.control.as<Control>()->poison = 0;
    auto& state = states_[d];
    state.number = number_, state.behind = behind_ ? 1 : 0;
    state.followed = may_queue(world_, record_) ? 1 : 0;
    state.begin_step = begin_step, state.begin_total = begin_total;
    state.scratch = record_.launch.scratch;
    state.reports = reports;
    state.control = memory.control.as<Control>();
    state.tags = world_.tags();
    state.device_communicator = world_.communicators().device();
    state.log.records = memory.log_records.as<LogRecord>();
    state.log.tail = memory.log_tail.as<u32>(), state.log.head = memory.log_head.as<u32>();
    state.log.seen = state.log.head + 32;  // in another cache line
    if (trace_) state.trace = trace_->buffer(d, number_);
    state.timers = {memory.timers.as<u64>()};
    state.ledger = ledger_.get();
    state.user = record_.launch.user;
    if (proxy_) state.requests = proxy_->ring(d), state.command_queue = proxy_->command_queue(d);
    else if (has_commands_) state.command_queue = world_.endpoint().command_queue(d);
    state.freed = world_.windows().freed(d);
    bool const ends_itself = record_.image.arguments == Arguments::kernel_and_state;
    bool const queued = backend(device->kind()).queues_launches();
    auto const& news = *memory.news.as<RunNews>();
    if (specs_.empty() || specs_.back().grids.front().device->kind() != device->kind())
      specs_.push_back(spec(device->kind(), !device->in_host_memory() && gpus_have_lanes_));
    specs_.back().grids.push_back(
        {device, layout_.ranks_per_device, (layout_.first_device + d) * layout_.ranks_per_device,
         state_of(d), reports, memory.control.as<Control>(),
         trace_ && device->in_host_memory() ? &trace_->devices[d].cores : nullptr,
         ends_itself ? &news.ended : nullptr, number_,
         ends_itself && queued ? &news.begun : nullptr, count_, memory.base.as<u32>()});
  }
  if (record_.graph && !record_.one_by_one) make_graph();
}

// The values that the launches of all kinds of devices share. `lanes`: for GPUs that have some.
LaunchSpec RunSupervisor::spec(std::string_view kind, bool lanes) const {
  LaunchSpec spec;
  spec.resources = world_.resources().launch_resources(kind);
  spec.image = record_.image;
  spec.by_warp = lanes;
  spec.kernel = record_.kernel.data();
  spec.threads = record_.launch.threads;
  spec.scratch = record_.launch.scratch;
  spec.workers = world_.options().workers;
  // The proxy's thread then moves all messages. (16 cores beside an H200: messages of 2 MiB in each
  // step of 1.6 ms; without a core of its own steps took 1 to 3 % longer.)
  spec.beside = std::ranges::any_of(layout_.devices,
                                    [&](auto const& device) { return device->kind() != kind; });
  spec.thread_a_rank = record_.launch.thread_a_rank;
  if (proxy_) {
    spec.help = [proxy = proxy_] { return proxy->help(); };
    spec.withdraw = [proxy = proxy_] { proxy->withdraw(); };
  }
  if (world_.lanes().size() != 0)
    spec.has_news = [](void const* state, u32 rank) {
      return lanes_have_news(*static_cast<RunState const*>(state), rank);
    };
  spec.shared = !group_.alone() || proxy_ || record_.launch.with_host;
  spec.neighbours = group_.count();
  spec.sharers = layout_.sharers;
  if (world_.queues_runs()) spec.after = record_.before;
  return spec;
}

std::vector<LaunchGrid> RunSupervisor::all_grids() const {
  std::vector<LaunchGrid> grids;
  for (auto const& spec : specs_) grids.insert(grids.end(), spec.grids.begin(), spec.grids.end());
  return grids;
}

/// The state in the form that the device's kernel takes.
void const* RunSupervisor::state_of(u32 device) {
  if (auto* const side_by_side = world_.resources().split_states())
    return &(side_by_side[device] = states_[device]);
  if (record_.image.arguments == Arguments::kernel_and_state) return &states_[device];
  auto& memory = world_.resources().memory(device);
  layout_.devices[device]->write(memory.state.data(), &states_[device], memory.state.size());
  return memory.state.data();
}

}  // namespace meshpost::detail
