// Runs that are launched together: their form on the devices, and the host's work meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "rma/runs/ending/end.hpp"
#include "rma/runs/ending/unconsumed.hpp"
#include "rma/runs/launching/run.hpp"

namespace meshpost::detail {

std::string RunRecord::name() const {
  if (!graph) return image.name;
  return fmt::format("{} (run {} of {} of a graph)", image.name, step + 1, graph->steps.size());
}

void RunRecord::take_step(u32 number) {
  auto const& one = graph->steps[number];
  step = number;
  image = one.image;
  kernel = one.kernel;
  launch.threads = one.launch.threads;
  launch.scratch = one.launch.scratch;
  launch.thread_a_rank = one.launch.thread_a_rank;
  launch.user = one.launch.user;
}

bool RunRecord::has_more_steps() const { return one_by_one && step + 1 < graph->steps.size(); }

std::shared_ptr<RunRecord> WorldState::start(std::shared_ptr<GraphRecord> const& graph,
                                             Launch const& launch, bool awaited) {
  {
    std::scoped_lock const lock(graph->mutex);
    if (graph->steps.empty())
      throw Error(Kind::bad_argument, "launch a graph", "it has no runs", "add some first");
    auto const shape = [](Launch const& one) {
      auto const& t = one.threads;
      return std::tuple(t.x, t.y, t.z, one.scratch.value, one.thread_a_rank, one.user);
    };
    if (shape(launch) != shape(Launch{}))
      throw Error(Kind::bad_argument, "launch a graph",
                  "its Launch has threads, scratch, thread_a_rank or user, which each of its runs "
                  "has for itself",
                  "give them to Graph::add");
    for (auto const& step : graph->steps) check_launch(step.image, step.launch);
    graph->launched = true;
  }
  auto record = std::make_shared<RunRecord>();
  record->graph = graph;
  record->launch = launch;
  record->take_step(0);
  return queue_.enqueue(record, awaited);
}

// Made once, and again after windows were freed, or for another World. Its runs get the state that
// this run would get (prepare()), except their numbers, which they find in memory.
void RunSupervisor::make_graph() {
  std::vector<FreedWindows> freed;
  freed.reserve(states_.size());
  for (auto const& state : states_) freed.push_back(state.freed);
  auto& graph = *record_.graph;
  std::scoped_lock const lock(graph.mutex);
  if (!graph.on_devices || !graph.on_devices->fits(world_.number(), freed)) {
    graph.on_devices.reset();
    auto const made = std::make_shared<GraphOnDevices>();
    made->world = world_.number(), made->freed = freed;
    std::vector<std::vector<LaunchSpec>> by_kind(specs_.size());
    std::vector<RunState> states;
    states.reserve(graph.steps.size() * states_.size());
    for (u32 k = 0; k < graph.steps.size(); ++k) {
      record_.take_step(k);
      bool const lanes =
          world_.lanes().decide(record_.image, record_.launch, layout_, world_.heap(),
                                [this](std::string_view kind) { return spec(kind, false); });
      std::size_t device = 0;
      for (std::size_t kind = 0; kind < specs_.size(); ++kind) {
        auto one = spec(specs_[kind].grids.front().device->kind(), lanes);
        one.kernel = graph.steps[k].kernel.data();
        one.grids = specs_[kind].grids;
        for (auto& grid : one.grids) {
          auto& state = states.emplace_back(states_[device++]);
          state.number = k + 1, state.base = grid.base;
          state.behind = state.followed = 1;
          state.scratch = record_.launch.scratch;
          state.user = record_.launch.user;
          state.lanes = world_.lanes().lanes(*grid.device, lanes);
          grid.state = &state;
        }
        by_kind[kind].push_back(std::move(one));
      }
    }
    for (auto const& steps : by_kind)
      made->of_kinds.push_back(
          backend(steps.front().grids.front().device->kind()).make_graph(steps));
    record_.take_step(0);
    graph.on_devices = made;
  }
  graph_ = graph.on_devices;
  for (std::size_t kind = 0; kind < specs_.size(); ++kind)
    specs_[kind].graph = graph_->of_kinds[kind].get();
}

// While the runs are in progress: a device that has news waits until the host has taken them. Those
// of the last run are taken when all have ended (drain()).
void RunSupervisor::take_news() {
  auto const news_of = [&](u32 d) -> RunNews const& {
    return *world_.resources().memory(d).news.as<RunNews>();
  };
  auto const has_ended = [&](u32 d, u32 run) {
    return static_cast<i32>(memory::load_acquire(&news_of(d).ended) - run) >= 0;
  };
  u32 const before = taken_.value_or(number_ - count_);
  u32 run = before;
  for (u32 d = 0; d < layout_.own_count(); ++d) {
    u32 const with_news = memory::load_acquire(&news_of(d).of_run);
    if (static_cast<i32>(with_news - before) > 0 && has_ended(d, with_news)) run = with_news;
  }
  if (run == before || run == number_) return;
  // No device is past this run's end, but some may not have reached it.
  for (u32 d = 0; d < layout_.own_count(); ++d)
    if (!has_ended(d, run)) return;
  auto& result = record_.result;
  result.timings.resize(layout_.device_count());
  auto const timings = collect_timings(world_, states_, run);
  for (u32 d = 0; d < timings.size(); ++d)
    std::ranges::copy(timings[d], std::back_inserter(result.timings[layout_.first_device + d]));
  u64 const room =
      RunPart::most_unconsumed - std::min<u64>(RunPart::most_unconsumed, result.unconsumed.size());
  std::ranges::move(read_unconsumed(world_, run, room, result.unconsumed_left_out),
                    std::back_inserter(result.unconsumed));
  taken_ = run;
  for (u32 d = 0; d < layout_.own_count(); ++d)
    memory::store(&world_.resources().memory(d).news.as<RunNews>()->taken, run, Order::system);
}

// The first run that has not ended on all devices.
void RunSupervisor::name_what_failed() {
  if (!graph_) return;
  u32 step = count_ - 1;
  for (u32 d = 0; d < layout_.own_count(); ++d) {
    u32 const ended = memory::load_acquire(&world_.resources().memory(d).news.as<RunNews>()->ended);
    step = std::min(step, ended - (number_ - count_));
  }
  record_.take_step(step);
}

}  // namespace meshpost::detail
