#include "meshpost/rma/world.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "base/fork.hpp"
#include "base/host_calls.hpp"
#include "meshpost/base/config.hpp"
#include "meshpost/base/events.hpp"
#include "rma/world_state.hpp"
#include "world/mappable.hpp"

namespace meshpost {
namespace {

// Windows know their World by number, so that the handle of a destroyed World is detected.
struct Worlds {
  std::mutex mutex;
  std::map<u32, std::weak_ptr<detail::WorldState>> all;
};
Worlds& worlds() {
  static auto* const one = new Worlds;
  return *one;
}

}  // namespace

class World::Implementation {
 public:
  explicit Implementation(WorldOptions const& options)
      : state(new detail::WorldState(options), &detail::WorldState::end) {
    std::scoped_lock const lock(worlds().mutex);
    worlds().all[state->number()] = state;
  }
  ~Implementation() {
    std::scoped_lock const lock(worlds().mutex);
    worlds().all.erase(state->number());
  }
  Implementation(Implementation const&) = delete;
  Implementation& operator=(Implementation const&) = delete;

  std::shared_ptr<detail::WorldState> state;
};

namespace {
WorldOptions checked(WorldOptions options) {
  refuse_after_fork("World");
  if (inside_kernel())
    throw Error(Kind::misuse, "World", "it was created inside a kernel", "create it on the host");
  return options;
}

// Once, by one process of a job.
void warn_of_variables() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (auto const& text : misspelt_variables()) warn(text);
  });
}
}  // namespace

World::World(WorldOptions const& options)
    : implementation_(std::make_unique<Implementation>(checked(options))) {
  if (process() == 0) warn_of_variables();
}
World::~World() {
  // In a forked child the supervisor thread is missing, so nothing can be ended there.
  leave_to_parent(implementation_);
}

u32 World::process() const { return implementation_->state->group().number(); }
u32 World::processes() const { return implementation_->state->group().count(); }
u32 World::size() const { return implementation_->state->layout().ranks(); }
u32 World::device_count() const { return implementation_->state->layout().device_count(); }
u32 World::ranks_per_device() const { return implementation_->state->layout().ranks_per_device; }
u32 World::first_rank() const {
  auto const& layout = implementation_->state->layout();
  return layout.first_device * layout.ranks_per_device;
}
std::vector<std::shared_ptr<Device>> const& World::devices() const {
  return implementation_->state->layout().devices;
}
HostId World::host(u32 process) const { return implementation_->state->host().host(process); }
Communicator World::communicator() const { return implementation_->state->communicators().world(); }
Communicator World::device_communicator() const {
  return implementation_->state->communicators().device();
}
Communicator World::split(Communicator const& parent, std::function<i64(RankId)> const& color,
                          std::source_location where) {
  HostCall call(HostCallKind::other, "split", where);
  call.about([] { return "a split"; });
  return implementation_->state->split(parent, color);
}
WindowInfo World::make_window(WindowSpec const& spec, std::source_location where) {
  HostCall call(HostCallKind::other, "window", where);
  call.about([&] { return fmt::format("window '{}' to be made", spec.name); });
  return implementation_->state->make_window(spec);
}
void World::free_window(WindowInfo const& info, std::source_location where) {
  HostCall call(HostCallKind::other, "free", where);
  call.about([] { return "a window to be freed"; });
  implementation_->state->free_window(info);
}
Allocation World::allocate(Device& device, Bytes size) { return allocate_mappable(device, size); }
Run World::start(KernelImage const& image, void const* kernel, std::size_t bytes,
                 Launch const& launch, bool awaited, std::source_location where) {
  HostCall call(HostCallKind::launch, "launch", where);
  call.about([&] { return image.name; });
  return Run(implementation_->state->start(image, kernel, bytes, launch, awaited));
}

Run World::launch(Graph const& graph, Launch const& launch, std::source_location where) {
  HostCall call(HostCallKind::launch, "launch", where);
  call.about([] { return "a graph"; });
  return Run(implementation_->state->start(graph.record_, launch, false));
}
RunResult World::run(Graph const& graph, Launch const& launch, std::source_location where) {
  HostCall call(HostCallKind::wait, "run", where);
  call.about([] { return "a graph"; });
  return Run(implementation_->state->start(graph.record_, launch, true)).wait(where);
}

Run::Run(std::shared_ptr<detail::RunRecord> record) : record_(std::move(record)) {}

Run::~Run() {
  if (!record_ || leave_to_parent(record_)) return;
  bool observed = false;
  {
    std::scoped_lock const lock(record_->mutex);
    observed = record_->observed;
  }
  if (observed) return;
  try {
    wait();
  } catch (std::exception const& error) {
    warn(fmt::format("a run that nobody waited for failed: {}", error.what()));
  }
}

namespace {
void check_there(std::shared_ptr<detail::RunRecord> const& record, char const* operation) {
  if (!record)
    throw Error(Kind::misuse, operation, "this Run was moved from", "use the Run that it went to");
}
}  // namespace

RunResult const& Run::wait(std::source_location where) {
  check_there(record_, "wait for a run");
  HostCall call(HostCallKind::wait, "Run::wait", where);
  call.about([this] { return record_->graph ? "a graph" : "run " + record_->image.name; });
  refuse_after_fork("wait for a run");
  if (inside_kernel())
    throw Error(Kind::misuse, "wait for a run", "it was called from inside a kernel",
                "wait on the host");
  std::unique_lock lock(record_->mutex);
  record_->observed = true;
  while (!record_->done) {
    auto* const world = record_->world;
    if (!world) {  // another thread is about to store the result
      record_->changed.wait(lock);
      continue;
    }
    world->queue().pin();
    lock.unlock();
    world->queue().help(record_);
    world->queue().unpin();
    lock.lock();
  }
  if (record_->error) throw Error(*record_->error);
  return record_->result;
}

bool Run::done() const {
  check_there(record_, "look at a run");
  refuse_after_fork("look at a run");
  std::scoped_lock const lock(record_->mutex);
  return record_->done;
}

namespace detail {

std::string readable_name(std::type_info const& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> const name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string text = status == 0 ? name.get() : type.name();
  std::string const anonymous = "(anonymous namespace)::";
  for (auto at = text.find(anonymous); at != std::string::npos; at = text.find(anonymous))
    text.erase(at, anonymous.size());
  return text;
}

std::shared_ptr<WorldState> world_of(u32 number, std::string_view operation) {
  refuse_after_fork(operation);  // before any lock: a thread of the parent may have held it
  std::scoped_lock const lock(worlds().mutex);
  auto const found = worlds().all.find(number);
  auto state = found == worlds().all.end() ? nullptr : found->second.lock();
  if (number == 0) throw never_made(Kind::misuse, operation);
  if (!state)
    throw Error(Kind::misuse, std::string(operation),
                fmt::format("world {} of this window does not exist (any more)", number),
                "keep the World alive while its windows are used");
  return state;
}

void transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void* target,
              void const* source, u64 count, std::source_location where) {
  HostCall call(source ? HostCallKind::write : HostCallKind::read,
                source ? "Window::write" : "Window::read", where);
  call.about([] { return "the runs before, and a copy"; });
  world_of(window.world, source ? "write" : "read")
      ->host()
      .transfer(window, element_bytes, rank, offset, target, source, count);
}

void raise(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void const* source,
           u64 count, Tag tag, std::source_location where) {
  HostCall call(HostCallKind::write, source ? "Window::put_notify" : "Window::notify", where);
  call.about([] { return "the runs before, and a message"; });
  world_of(window.world, "notify from the host")
      ->host()
      .raise(window, element_bytes, rank, offset, source, count, tag);
}

void raise(WindowInfo const& window, StreamId stream, Tag tag, std::source_location where) {
  HostCall const call(HostCallKind::notify, "Window::notify", where);
  world_of(window.world, "notify a stream from the host")->host().raise(window, stream, tag);
}

void wait_on_host(WindowInfo const& window, Tag tag, u32 count,
                  std::optional<std::chrono::milliseconds> deadline, std::source_location where) {
  HostCall call(HostCallKind::read, "Window::wait", where);
  call.about([&] { return fmt::format("a notification with tag {}", tag.value); });
  auto const world = world_of(window.world, "wait on the host");
  world->host().wait(window, tag, count, deadline.value_or(world->options().deadline));
}

Part own_part(WindowInfo const& window, RankId rank) {
  return world_of(window.world, "part")->host().own_part(window, rank);
}

u64 part_count(WindowInfo const& window, RankId rank) {
  return world_of(window.world, "read")->host().part_count(window, rank);
}

}  // namespace detail
}  // namespace meshpost
