#include "copy/job/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/fork.hpp"
#include "meshpost/base/config.hpp"
#include "world/join_engine.hpp"
#include "world/out_of_band.hpp"

namespace meshpost {
namespace {

// A channel of its own for each, the same in all processes; Worlds count from the other end.
ProcessGroup next_peers() {
  static std::atomic<u32> made{0};
  auto processes = Processes::of_job();
  if (!processes) return {};
  return {std::move(processes), (u32{1} << 31) + made++};
}

}  // namespace

JobMemory::State::State(JobMemoryOptions const& options)
    : group(next_peers()),
      epochs(group),
      other(group),
      progress_thread(group, {.user = "JobMemory", .operation = "copy", .operations = "copies"},
                      {.short_sleeps = 2000, .longest_sleep = std::chrono::microseconds(500)}),
      fastest_(options.fastest),
      watch_([this](u64 id, char const* begin, u64 size) {
        if (is_forked()) return;  // it goes from the child alone
        release_all_in(begin, size);
        std::unique_lock const lock(mutex_);
        if (files_.erase(id) != 0) gone_.push_back({"file", id});
      }) {
  if (!group.any_far()) return;
  auto const wanted = options.net.empty() ? Config::from_environment().net : options.net;
  auto engine = join_engine(group, "JobMemory", wanted, net::Gpus::no,
                            [this](u32 process) { return group.far(process); });
  // Together: where this fails in one, the others must not go on without it.
  std::unique_ptr<copying::CopyServer> server;
  group.together("JobMemory", [&] {
    server = make_server(std::move(engine), network_notices);
    progress_thread.start(true);
  });
  network_ = server.get();
  progress_thread.add(std::move(server), true);
}

std::unique_ptr<copying::CopyServer> JobMemory::State::make_server(
    std::unique_ptr<net::Engine> engine, u32 notices) {
  return std::make_unique<copying::CopyServer>(
      std::move(engine), *this, group.count(),
      [this](u32 process) { return group.processes().name(process); },
      std::make_unique<Notices>(group.processes(), group.channel() | notices),
      group.processes().job().silence);
}

copying::StatePtr JobMemory::State::ask(CopyPath path, copying::CopyRequest const& request) {
  auto state = (path == CopyPath::network ? network_ : staged_)->ask(request);
  progress_thread.wake();
  return state;
}

void JobMemory::State::end(std::shared_ptr<State> const& self) {
  {
    std::unique_lock lock(copies_);
    ended_ = true;
    copies_changed_.wait(lock, [this] { return under_way_ == 0; });
  }
  // An exception that this process alone has: the others may be in a call of a World, and wait
  // there for this process until it has left. Waiting for them here would be for ever.
  bool agreed = std::uncaught_exceptions() <= exceptions_;
  if (agreed) try {
      group.exchange("end the job's memory");  // until then others may need the progress thread
    } catch (Error const&) {
      agreed = false;  // they are gone, or do something else
    }
  progress_thread.stop(agreed);
  if (progress_thread.hangs()) keep_for_ever(new std::shared_ptr(self));
}

void JobMemory::State::begin_copy() {
  std::scoped_lock const lock(copies_);
  if (ended_)
    throw Error(Kind::misuse, "copy", "the JobMemory of its memory is gone",
                "let it live longer than the copies");
  ++under_way_;
}

void JobMemory::State::end_copy() {
  std::scoped_lock const lock(copies_);
  if (--under_way_ == 0) copies_changed_.notify_all();
}

void JobMemory::State::check_alive(u32 process) const {
  if (process == group.number()) return;
  if (!group.processes().lost()) return;
  if (auto const loss = group.processes().gone(process); loss && !loss->left)
    throw group.processes().lost_error("copy", *loss);
  if (!group.far(process) && !group.node().alive(process))
    throw group.processes().lost_error("copy", Loss{process, false, "it was killed, or has ended"});
}

void JobMemory::State::release(u32 number) {
  AllocationName name;
  u32 slot = 0;
  {
    std::unique_lock const lock(mutex_);
    auto const own = own_.extract(number);
    if (own.empty()) return;
    slot = own.mapped().slot;
    name = own.mapped().allocation;
  }
  epochs.close(slot);  // before others unmap it
  // Others close what drivers have mapped, or its memory would stay in use when it is freed.
  std::unique_lock const lock(mutex_);
  if (!name.kind.empty() && name.kind != "file" && !exposes(name)) gone_.push_back(name);
}

// With mutex_ held.
bool JobMemory::State::exposes(AllocationName const& name) const {
  return std::ranges::any_of(own_, [&](auto const& own) { return own.second.allocation == name; });
}

void JobMemory::State::release_all_in(char const* begin, u64 size) {
  std::vector<u32> numbers;
  {
    std::shared_lock const lock(mutex_);
    for (auto const& [number, own] : own_)
      if (own.begin < begin + size && begin < own.begin + own.size) numbers.push_back(number);
  }
  for (u32 const number : numbers) release(number);
}

// -- what others ask for

JobMemory::State::Own JobMemory::State::own_part(u32 exposure, u64 offset, u64 size) {
  std::shared_lock const lock(mutex_);
  auto const found = own_.find(exposure);
  if (found == own_.end())
    throw Error(Kind::bad_argument, "copy",
                fmt::format("{} has released its part, or never exposed it",
                            group.processes().name(group.number())),
                "keep its Exposed until nobody copies from or to it");
  auto const& own = found->second;
  if (offset > own.size || size > own.size - offset)
    throw Error(Kind::bad_argument, fmt::format("copy from or to '{}'", own.name),
                fmt::format("{} bytes at offset {} are named, {}'s part has {}", size, offset,
                            group.processes().name(group.number()), own.size),
                "stay inside");
  return own;
}

void JobMemory::State::write(u32 exposure, u64 offset, std::string_view bytes) {
  auto const own = own_part(exposure, offset, bytes.size());
  copying::AccessEpoch const epoch(epochs, group.number(), own.slot, exposure);
  if (!epoch) own_part(~u32{0}, 0, 0);  // released meanwhile: throws
  copy(own.begin + offset, bytes.data(), Bytes{bytes.size()});
  arrivals_.fetch_add(1, std::memory_order_release);  // before anybody is told
}

void JobMemory::State::read(u32 exposure, u64 offset, char* target, u64 size) {
  auto const own = own_part(exposure, offset, size);
  copying::AccessEpoch const epoch(epochs, group.number(), own.slot, exposure);
  if (!epoch) own_part(~u32{0}, 0, 0);  // released meanwhile: throws
  copy(target, own.begin + offset, Bytes{size});
}

// -- the interface

JobMemory::JobMemory(JobMemoryOptions const& options) {
  copying::check_caller("JobMemory");
  state_ = std::make_shared<State>(options);
}
JobMemory::~JobMemory() {
  if (!leave_to_parent(state_)) state_->end(state_);
}
u32 JobMemory::process() const { return state_->group.number(); }
u32 JobMemory::processes() const { return state_->group.count(); }
void JobMemory::meet(std::string const& name) {
  copying::check_caller("meet");
  state_->meet(name);
}
Exposed JobMemory::expose(void* memory, Bytes size, std::string const& name) {
  copying::check_caller("expose memory");
  return Exposed(state_->expose(memory, size, name));
}
Allocation JobMemory::allocate(Bytes size) {
  refuse_after_fork("allocate memory to share");
  return memory_files().allocate(size, nullptr);
}
Allocation JobMemory::allocate(Device& device, Bytes size) {
  refuse_after_fork("allocate memory to share");
  return allocate_mappable(device, size);
}

}  // namespace meshpost
