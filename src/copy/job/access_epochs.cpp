#include "copy/job/access_epochs.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "meshpost/base/descriptor.hpp"

namespace meshpost::copying {
namespace {

static_assert(std::atomic<u32>::is_always_lock_free, "processes share them");

Error no_memory(char const* what) {
  return {Kind::bad_environment, "JobMemory", fmt::format("{}: {}", what, std::strerror(errno)),
          "raise the limit of open files (ulimit -n), or of memory"};
}

char* map(int file, u64 size) {
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw no_memory("memory to share can't be mapped");
  return static_cast<char*>(at);
}

}  // namespace

AccessEpochs::AccessEpochs(ProcessGroup const& group)
    : group_(group), maps_(group.count(), nullptr), taken_(slots) {
  u64 const words = 1 + u64{group.count()};
  pitch_ = (words * sizeof(u32) + 63) / 64 * 64;
  size_ = pitch_ * slots;
  std::vector<Descriptor> mine;
  group.together("JobMemory", [&] {
    mine.emplace_back(memfd_create("meshpost-access-epochs", MFD_CLOEXEC));
    if (!mine[0] || ftruncate(mine[0].get(), static_cast<off_t>(size_)) != 0)
      throw no_memory("no memory file is to be had");
    maps_[group.number()] = map(mine[0].get(), size_);
  });
  if (group.alone()) return;
  group.together("JobMemory", [&] {
    group.node().share(mine,
                       [&](u32 process, u32, int file) { maps_[process] = map(file, size_); });
  });
}

AccessEpochs::~AccessEpochs() {
  for (char* const one : maps_)
    if (one) munmap(one, size_);
}

AccessEpochs::Words AccessEpochs::words(u32 process, u32 slot) const {
  auto* const first = reinterpret_cast<std::atomic<u32>*>(maps_[process] + slot * pitch_);
  return {first, first + 1};
}

u32 AccessEpochs::take() {
  std::scoped_lock const lock(mutex_);
  for (u32 slot = 0; slot < slots; ++slot)
    if (!taken_[slot]) {
      taken_[slot] = true;
      return slot;
    }
  throw Error(Kind::out_of_memory, "expose memory",
              fmt::format("this process exposes {} parts already", slots),
              "release some, or expose larger ones and use parts of them");
}

void AccessEpochs::open(u32 slot, u32 number) { words(group_.number(), slot).open->store(number); }

void AccessEpochs::close(u32 slot) {
  auto const own = words(group_.number(), slot);
  own.open->store(0);
  bool left_by_all = true;
  for (u32 process = 0; process < group_.count(); ++process)
    while (own.inside[process].load() != 0) {
      if (process != group_.number() && !group_.node().alive(process)) {
        left_by_all = false;  // what it has counted stays: no other exposure may inherit it
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  std::scoped_lock const lock(mutex_);
  if (left_by_all) taken_[slot] = false;
}

bool AccessEpochs::enter(u32 process, u32 slot, u32 number) {
  auto const there = words(process, slot);
  there.inside[group_.number()].fetch_add(1);
  if (there.open->load() == number) return true;
  leave(process, slot);
  return false;
}

void AccessEpochs::leave(u32 process, u32 slot) {
  words(process, slot).inside[group_.number()].fetch_sub(1);
}

}  // namespace meshpost::copying
