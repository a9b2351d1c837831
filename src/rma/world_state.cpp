#include "rma/world_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "meshpost/base/events.hpp"
#include "net/rounds.hpp"
#include "rma/runs/launching/run.hpp"
#include "trace/sync_report.hpp"
#include "trace/timeline_writer.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 default_tags = 256;  // of the world's own counters, as in dCUDA

std::atomic<u32> worlds_made{0};

ProcessGroup peers_of(WorldOptions const& options) {
  if (options.alone) return {};
  auto processes = options.processes ? options.processes : Processes::of_job();
  if (!processes) return {};
  if (options.check_delivery)
    throw Error(Kind::bad_argument, "World", "delivery can be checked within one process only",
                "run one process with several devices, or leave MESHPOST_CHECK empty");
  u32 const channel = processes->take_channel();
  return {std::move(processes), channel};
}

// The settings that, with the number of ranks, decide the layout of the symmetric heap.
std::vector<Setting> settings_of(WorldOptions const& options) {
  return {
      {"lanes of each rank", "MESHPOST_LANES, or WorldOptions::lanes",
       options.lanes ? std::to_string(*options.lanes) : "the usual"},
      {"bytes for collectives", "WorldOptions::collectives", std::to_string(options.collectives)}};
}

Layout layout_of(WorldOptions const& options, ProcessGroup const& group) {
  if (options.deadline.count() < 0)
    throw Error(Kind::bad_argument, "World",
                fmt::format("the deadline is {} ms", options.deadline.count()),
                "give 0 (never) or more");
  auto layout =
      make_layout(options.devices, options.ranks, options.apart, group, settings_of(options));
  if (options.check_delivery && !std::ranges::all_of(layout.devices, &Device::in_host_memory))
    throw Error(Kind::bad_argument, "World", "delivery can be checked on CPU devices only",
                "use devices such as cpu:2, or leave MESHPOST_CHECK empty");
  if (options.check_delivery && layout.any_far())
    throw Error(Kind::bad_argument, "World",
                "delivery can be checked only where devices reach each other's memory",
                "leave MESHPOST_REACH empty, or MESHPOST_CHECK");
  return layout;
}

}  // namespace

WorldState::WorldState(WorldOptions options)
    : options_(std::move(options)),
      number_(++worlds_made),
      group_(peers_of(options_)),
      layout_(layout_of(options_, group_)),
      heap_(layout_, [this](Spaces& spaces, Bytes offset,
                            Bytes size) { group_.extend(spaces, layout_, offset, size); }),
      lanes_(options_.check_delivery ? LaneKeeper() : LaneKeeper(options_.lanes, layout_, heap_)),
      resources_(layout_, heap_, options_.trace_events),
      proxy_(layout_.far_processes || layout_.any_far()
                 ? std::make_unique<Proxy>(memory_, options_.net)
                 : nullptr),
      locks_(layout_.devices),
      agreement_(group_, layout_),
      communicators_(number_, memory_, options_.collectives) {
  tags_ =
      make_window({communicators_.world(), 1, 0, {}, {}, Tags{default_tags}, "the world's tags"});
  try {  // tells the others if it fails in one process only; else they would wait for it
    group_.together("World", [this] {
      resources_.make_memory();
      if (proxy_) proxy_->begin_thread();
      queue_.begin_thread();
    });
    begin_to_observe();
  } catch (...) {
    queue_.end_thread();
    throw;
  }
}

void WorldState::begin_to_observe() {
  if (options_.report_sync) trace::SyncReport::switch_on();
  if (options_.trace_host.empty()) return;
  try {
    host_timeline_ = std::make_shared<trace::HostTimeline>(options_.trace_events);
    add_host_observer(host_timeline_);
  } catch (std::bad_alloc const&) {
    if (options_.report_sync) trace::SyncReport::switch_off();
    throw;
  }
}

void WorldState::end_to_observe() {
  if (host_timeline_) remove_host_observer(host_timeline_);
  try {
    if (options_.report_sync) trace::SyncReport::switch_off();
    if (host_timeline_)
      trace::TimelineWriter::write_file(own_file(options_.trace_host),
                                        host_timeline_->to_perfetto());
  } catch (std::bad_alloc const&) {  // the World ends all the same
    warn("no memory to report calls of the host; set MESHPOST_TRACE_EVENTS to less");
  }
}

std::string WorldState::own_file(std::string const& file) const {
  if (file.empty() || group_.alone()) return file;
  std::filesystem::path path(file);
  auto const name =
      fmt::format("{}-{}{}", path.stem().string(), group_.number(), path.extension().string());
  return path.replace_filename(name).string();
}

void WorldState::end(WorldState* state) {
  state->close();
  bool const hangs = state->host_.far().hangs() || (state->proxy_ && state->proxy_->hangs());
  if (hangs) net::keep_for_ever(state);
  else delete state;
}

std::shared_ptr<WorldClient> WorldState::client(
    std::function<std::shared_ptr<WorldClient>()> const& make) {
  std::scoped_lock const lock(of_client_);
  if (!client_ && make) client_ = make();
  return client_;
}

void WorldState::close() {
  if (auto const client = this->client(nullptr)) client->close();
  queue_.end_thread();
  queue_.await_unpinned();
  end_to_observe();
  trace::TimelineWriter::of_process().finish();  // they read memory of this World
  host_.far().end(meets_at_end());
}

// False: the others don't know that this process ends its World.
bool WorldState::meets_at_end() {
  // After an error they do not make this exchange, and will learn of the error.
  if (std::uncaught_exceptions() > exceptions_) return false;
  bool const mapped = windows_.unmap() && !group_.alone();
  if (!layout_.far_processes && !mapped) return true;
  try {
    // Until then others may read memory of this process, and have memory of its users mapped.
    group_.exchange("end the World");
    return true;
  } catch (Error const&) {
    return false;  // others are gone or elsewhere; they will notice that this process is gone
  }
}

WindowInfo WorldState::make_window(World::WindowSpec const& spec) {
  guard("window");
  auto const lock = queue_.idle();
  return windows_.make(spec);
}

void WorldState::free_window(WindowInfo const& info) {
  guard("free");
  if (auto const client = this->client(nullptr)) client->release(info.number);
  auto const lock = queue_.idle();
  windows_.free(info);
}

Communicator WorldState::split(Communicator const& parent,
                               std::function<i64(RankId)> const& color) {
  guard("split");
  auto const lock = queue_.idle();
  return communicators_.split(parent, color);
}

std::shared_ptr<RunRecord> WorldState::start(KernelImage const& image, void const* kernel,
                                             std::size_t bytes, Launch const& launch,
                                             bool awaited) {
  check_launch(image, launch);
  auto record = std::make_shared<RunRecord>();
  record->image = image;
  record->kernel = copy_of_kernel(kernel, bytes);
  record->launch = launch;
  return queue_.enqueue(record, awaited);
}

void WorldState::check_launch(KernelImage const& image, Launch const& launch) const {
  guard("launch", image.name);
  if (image.abi != abi_version)
    throw Error(Kind::version_mismatch, fmt::format("launch {}", image.name),
                fmt::format("it was compiled for ABI version {}, this library has {}", image.abi,
                            abi_version),
                "compile the kernel with the headers of the installed library");
  if (std::ranges::find(launch.streams, nullptr) != launch.streams.end())
    throw Error(Kind::bad_argument, fmt::format("launch {}", image.name),
                "a stream of Launch::streams is null", "name only streams that are there");
  if (Dim3 const t = launch.threads; t.x != 0 && !layout_.devices.empty()) {
    u32 most = ~0u;
    for (auto const& device : layout_.devices) most = std::min(most, device->info().max_threads);
    auto const fits = [most](u64 threads) { return threads >= 1 && threads <= most; };
    if (!fits(t.x) || !fits(u64{t.x} * t.y) || !fits(u64{t.x} * t.y * t.z))
      throw Error(Kind::bad_argument, fmt::format("launch {}", image.name),
                  fmt::format("{} x {} x {} threads a rank were asked for; there may be 1 to {}",
                              t.x, t.y, t.z, most),
                  "use fewer threads, at least one in each direction");
  }
}

}  // namespace meshpost::detail
