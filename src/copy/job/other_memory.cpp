#include "copy/job/other_memory.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "fabric/host_copy.hpp"
#include "world/secret.hpp"
#include "world/wire.hpp"

namespace meshpost::copying {
namespace {

constexpr u64 piece = u64{4} << 20;  // that a thread takes at a time

std::string explain(int error, std::string const& process) {
  switch (error) {
    case EPERM:
    case EACCES:
      return fmt::format(
          "the system does not let this process read {}'s memory (process_vm_readv: {}): allow it "
          "with sysctl kernel.yama.ptrace_scope=0, in a container with --cap-add=SYS_PTRACE or a "
          "seccomp profile that permits process_vm_readv and process_vm_writev",
          process, std::strerror(error));
    case ENOSYS:
      return fmt::format(
          "the system has no process_vm_readv ({}): a sandbox such as gVisor (runsc), or a seccomp "
          "profile; run the container with another runtime or profile",
          std::strerror(error));
    default:
      return fmt::format(
          "{}'s memory can't be read (process_vm_readv: {}): processes of several containers need "
          "one space of process numbers (--pid=host, --pid=container:NAME)",
          process, std::strerror(error));
  }
}

}  // namespace

OtherMemory::OtherMemory(ProcessGroup const& group)
    : group_(group), pids_(group.count(), 0), why_not_(group.count()) {
  if (group.alone()) return;
  auto const word = random_bytes();  // stays until all have read it
  wire::Packer packer;
  packer.value(getpid()).value(reinterpret_cast<u64>(word.data())).value(word);
  auto const all = group.exchange("JobMemory", packer.take());
  for (u32 process = 0; process < group.count(); ++process) {
    if (process == group.number() || group.far(process)) continue;
    wire::Unpacker unpacker(all[process]);
    pids_[process] = unpacker.value<pid_t>();
    auto const address = unpacker.value<u64>();
    auto const expected = unpacker.value<RandomBytes>();
    RandomBytes seen{};
    iovec const here{seen.data(), seen.size()};
    iovec const there{reinterpret_cast<void*>(address), seen.size()};  // NOLINT: another process's
    auto const got = process_vm_readv(pids_[process], &here, 1, &there, 1, 0);
    // Another word: the number is that of an unrelated process in another space of process numbers.
    bool const right = got == static_cast<ssize_t>(seen.size()) && seen == expected;
    if (!right)
      why_not_[process] = explain(got < 0 ? errno : ESRCH, group.processes().name(process));
  }
  // A process that may read may write: Linux asks for the same. But a filter may refuse one of
  // them.
  for (u32 process = 0; process < group.count(); ++process) {
    if (pids_[process] == 0 || !why_not_[process].empty()) continue;
    iovec const nothing{nullptr, 0};
    if (process_vm_writev(pids_[process], &nothing, 1, &nothing, 1, 0) < 0)
      why_not_[process] = explain(errno, group.processes().name(process));
  }
  group.exchange("JobMemory");  // until then others may read the word
}

bool OtherMemory::readable(u32 process, u64 there, u64 size) const {
  char ends[2];
  iovec const here{ends, sizeof ends};
  iovec const both[] = {{reinterpret_cast<void*>(there), 1},              // NOLINT: another's
                        {reinterpret_cast<void*>(there + size - 1), 1}};  // NOLINT
  return process_vm_readv(pids_[process], &here, 1, both, 2, 0) == sizeof ends;
}

void OtherMemory::copy(Way way, u32 process, u64 there, char* here, u64 size) const {
  // The number of a process that is gone may be another process's by now.
  if (!group_.node().alive(process))
    throw group_.processes().lost_error("copy",
                                        Loss{process, false, "it was killed, or has ended"});
  if (size <= piece) return transfer(way, process, there, here, size);
  std::mutex mutex;
  std::optional<Error> failed;
  fabric::ThreadTeam::shared().each((size + piece - 1) / piece, [&](u64 i) {
    try {
      u64 const at = i * piece;
      transfer(way, process, there + at, here + at, std::min(piece, size - at));
    } catch (Error const& error) {
      std::scoped_lock const lock(mutex);
      if (!failed) failed = error;
    }
  });
  if (failed) throw Error(*failed);
}

void OtherMemory::transfer(Way way, u32 process, u64 there, char* here, u64 size) const {
  for (u64 done = 0; done < size;) {
    iovec const mine{here + done, size - done};
    iovec const other{reinterpret_cast<void*>(there + done), size - done};  // NOLINT: not ours
    auto const got = way == Way::read ? process_vm_readv(pids_[process], &mine, 1, &other, 1, 0)
                                      : process_vm_writev(pids_[process], &mine, 1, &other, 1, 0);
    if (got > 0) {
      done += static_cast<u64>(got);
      continue;
    }
    int const error = got < 0 ? errno : EFAULT;
    if (error == EINTR) continue;
    // Its memory goes before its sockets do.
    for (int i = 0; i < 200 && group_.node().alive(process); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(error == ESRCH ? 10 : 1));
    if (error == ESRCH || !group_.node().alive(process))
      throw group_.processes().lost_error("copy",
                                          Loss{process, false, "it was killed, or has ended"});
    throw Error(Kind::bad_argument, "copy",
                fmt::format("{} of {} bytes of {}'s exposed memory can't be {}: {}", size - done,
                            size, group_.processes().name(process),
                            way == Way::read ? "read" : "written", std::strerror(error)),
                "release memory (Exposed) before it is freed or made read-only");
  }
}

}  // namespace meshpost::copying
