#include "compat/mp/session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

#include "base/cores.hpp"
#include "compat/on_cpu/streams.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"
#include "rma/world_state.hpp"

namespace meshpost::compat::mp {
namespace {

std::shared_ptr<Device> open_gpu(int gpu) {
  auto& kind = default_backend();
  if (gpu < 0 || &kind == &host_backend()) return nullptr;
  return kind.open(static_cast<u32>(gpu));
}

// A rank for each process, in memory of the host.
WorldOptions for_processes(WorldOptions options) {
  options.devices = fmt::format("{}:1", host_backend().kind());
  options.ranks = 1;
  options.trace.clear();
  return options;
}

std::vector<u32> checked_peers(std::vector<int> const& peers, u32 processes) {
  std::vector<u32> checked;
  for (int const peer : peers) {
    if (peer < 0 || static_cast<u32>(peer) >= processes)
      throw Error(
          Kind::bad_argument, "mp_init",
          fmt::format("peer {} was named; there are processes 0 to {}", peer, processes - 1),
          "name peers by their numbers in the communicator");
    auto const number = static_cast<u32>(peer);
    if (std::ranges::find(checked, number) == checked.end()) checked.push_back(number);
  }
  return checked;
}

// Registrations, windows and queues, of all sessions of the process.
std::atomic<u64> handles = 0;

Error no_queue(std::string const& operation) {
  return {Kind::misuse, operation, "there is no such descriptor queue",
          "use it between mp_desc_queue_alloc and mp_desc_queue_free"};
}

// mpirun binds processes to cores, if they are few.
void warn_of_one_core() {
  if (usable_cores() > 1 || sysconf(_SC_NPROCESSORS_CONF) < 2) return;
  warn(
      "mp_init: this process may run on one core only. A program that polls keeps the library's "
      "thread from it, and messages then take milliseconds; start it with mpirun --bind-to "
      "none, or with more cores a process");
}

}  // namespace

UserStream::UserStream(Stream& stream, std::unique_ptr<Stream> owned, Device& device)
    : owned_(std::move(owned)),
      stream_(stream),
      begun_(device.allocate(Bytes{sizeof(u32)}, MemoryKind::pinned)) {
  std::memset(begun_.data(), 0, sizeof(u32));
}

void UserStream::wait(Engine& engine, std::string const& operation, u64 request) {
  engine.wait(operation, request, stream_, begun_.as<u32>(), ++waits_);
}

Session::Session(WorldOptions options, std::vector<int> const& peers, int gpu)
    : world_(for_processes(std::move(options))) {
  auto const shape = ChannelShape::of(world_.processes());
  window_ = world_.window<std::byte>(shape.bytes(), Tags{0}, "LibMP's channels");
  auto const state = detail::world_of(window_.info().world, "mp_init");
  warn_of_one_core();
  state->group().together("mp_init", [&] {
    auto known = checked_peers(peers, world_.processes());
    gpu_ = open_gpu(gpu);
    words_ = gpu_ ? gpu_ : world_.devices().front();
    Engine::Options engine;
    engine.deadline = state->options().deadline;
    if (!state->group().alone()) engine.lost = [this](u32 process) { return lost(process); };
    engine_ = std::make_unique<Engine>(Channels(window_, shape, RankId{world_.process()}),
                                       std::move(known), words_, std::move(engine));
  });
}

// Streams may still use words that they wait for.
Session::~Session() { engine_.reset(); }

std::optional<Error> Session::lost(u32 process) const {
  auto const state = detail::world_of(window_.info().world, "use LibMP");
  auto& processes = state->group().processes();
  auto const loss = processes.gone(process);
  if (!loss) return std::nullopt;
  return processes.lost_error(fmt::format("use process {}", process), *loss);
}

void Session::finish() {
  std::exception_ptr failure;
  try {
    engine_->flush("mp_finalize");
  } catch (...) {
    failure = std::current_exception();
  }
  auto const state = detail::world_of(window_.info().world, "mp_finalize");
  state->group().exchange("mp_finalize", {}, Waiters::patient);  // others wait for it
  if (failure) std::rethrow_exception(failure);
}

u64 Session::add_registration(void* memory, u64 bytes) {
  std::scoped_lock const lock(mutex_);
  u64 const made = ++handles;
  registered_[made] = {static_cast<char const*>(memory), bytes};
  return made;
}

void Session::drop_registration(u64 registration) {
  std::scoped_lock const lock(mutex_);
  if (registered_.erase(registration) != 0) return;
  throw Error(Kind::misuse, "mp_deregister", "this is no registration",
              "deregister once what mp_register has given");
}

void Session::check_registered(std::string const& operation, u64 registration, void const* memory,
                               u64 bytes) const {
  std::scoped_lock const lock(mutex_);
  auto const found = registered_.find(registration);
  if (found == registered_.end())
    throw Error(Kind::misuse, operation, "the registration was never made, or was ended",
                "pass what mp_register has given, before mp_deregister");
  auto const& known = found->second;
  auto const* const at = static_cast<char const*>(memory);
  if (at >= known.memory && bytes <= known.bytes &&
      static_cast<u64>(at - known.memory) <= known.bytes - bytes)
    return;
  throw Error(Kind::bad_argument, operation,
              fmt::format("{} bytes at {} were named; {} bytes at {} are registered", bytes, memory,
                          known.bytes, static_cast<void const*>(known.memory)),
              "stay inside the registered memory");
}

u64 Session::create_window(void* memory, u64 bytes) {
  u32 number = 0;
  {
    std::scoped_lock const lock(mutex_);
    number = ++windows_made_;
  }
  WindowPart part{memory, bytes, std::vector<u64>(processes(), bytes)};
  engine_->add_window(number, part);  // others may put before this returns
  auto const state = detail::world_of(window_.info().world, "mp_window_create");
  if (!state->group().alone()) {
    auto const all = state->group().exchange("mp_window_create", std::to_string(bytes));
    for (u32 process = 0; process < processes(); ++process)
      part.sizes[process] = std::stoull(all[process]);
    engine_->add_window(number, part);
  }
  std::scoped_lock const lock(mutex_);
  u64 const made = ++handles;
  windows_[made] = number;
  return made;
}

u32 Session::number_of_window(std::string const& operation, u64 window) const {
  std::scoped_lock const lock(mutex_);
  if (auto const found = windows_.find(window); found != windows_.end()) return found->second;
  throw Error(Kind::misuse, operation, "there is no such window, or it was destroyed",
              "use it between mp_window_create and mp_window_destroy");
}

void Session::destroy_window(u64 window) {
  engine_->drop_window(number_of_window("mp_window_destroy", window));
  std::scoped_lock const lock(mutex_);
  windows_.erase(window);
}

UserStream& Session::stream(std::string const& operation, void* native) {
  std::scoped_lock const lock(mutex_);
  auto* const on_cpu = gpu_ ? nullptr : stream_on_cpu(native);
  if (!gpu_ && !on_cpu)
    throw Error(Kind::bad_argument, operation,
                fmt::format("there is no stream {}, and mp_init found no GPU", native),
                "create the stream first, or let mp_init find the GPU (cudaSetDevice)");
  auto const found = streams_.find(native);
  // Another stream may have got the address of one that was destroyed.
  if (found != streams_.end() && (gpu_ || &found->second.stream() == on_cpu)) return found->second;
  streams_.erase(native);
  auto owned = gpu_ ? gpu_->adopt_stream(native) : nullptr;
  auto& stream = owned ? *owned : *on_cpu;
  return streams_.try_emplace(native, stream, std::move(owned), *words_).first->second;
}

u64 Session::add_queue() {
  std::scoped_lock const lock(mutex_);
  u64 const made = ++handles;
  queues_[made];
  return made;
}

void Session::drop_queue(u64 queue) {
  std::scoped_lock const lock(mutex_);
  auto const found = queues_.find(queue);
  if (found == queues_.end()) throw no_queue("mp_desc_queue_free");
  if (!found->second.empty())
    warn(fmt::format("mp_desc_queue_free: {} operations of the queue were never posted",
                     found->second.size()));
  queues_.erase(found);
}

// The caller holds the lock.
std::vector<QueuedOperation>& Session::queue(std::string const& operation, u64 queue) {
  auto const found = queues_.find(queue);
  if (found == queues_.end()) throw no_queue(operation);
  return found->second;
}

void Session::add_to_queue(std::string const& operation, u64 queue,
                           std::vector<QueuedOperation> const& operations) {
  std::scoped_lock const lock(mutex_);
  auto& all = this->queue(operation, queue);
  all.insert(all.end(), operations.begin(), operations.end());
}
std::vector<QueuedOperation> Session::queued(std::string const& operation, u64 queue) {
  std::scoped_lock const lock(mutex_);
  return this->queue(operation, queue);
}
void Session::clear_queue(std::string const& operation, u64 queue) {
  std::scoped_lock const lock(mutex_);
  this->queue(operation, queue).clear();
}

// -- the process's

namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<Session> session;
};
Current& current() {
  static auto* const one = new Current;
  return *one;
}

}  // namespace

void begin_session(WorldOptions const& options, std::vector<int> const& peers, int gpu) {
  std::scoped_lock const lock(current().mutex);
  if (current().session)
    throw Error(Kind::misuse, "mp_init", "it was called before", "call mp_finalize first");
  current().session = std::make_shared<Session>(options, peers, gpu);
}

std::shared_ptr<Session> session(std::string const& operation) {
  std::scoped_lock const lock(current().mutex);
  if (current().session) return current().session;
  throw Error(Kind::misuse, operation, "mp_init was not called, or mp_finalize was",
              "call it between mp_init and mp_finalize");
}

void end_session() {
  auto const ended = session("mp_finalize");
  std::exception_ptr failure;
  try {
    ended->finish();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    std::scoped_lock const lock(current().mutex);
    current().session.reset();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace meshpost::compat::mp
