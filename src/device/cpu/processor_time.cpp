// The time of a processor that threads of a launch get. Other programs may have it, or the host of
// a virtual machine.
#include <pthread.h>

#include <ctime>
#include <fstream>
#include <string>
#include <utility>

#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {

Worker::Got Worker::got() const {
  clockid_t clock{};
  timespec time{};
  auto const handle = const_cast<std::thread&>(thread).native_handle();
  if (thread.joinable() && pthread_getcpuclockid(handle, &clock) == 0) clock_gettime(clock, &time);
  return {std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec),
          looks.load(std::memory_order_relaxed)};
}

bool Worker::wants_to_run() const {
  int const thread_id = id.load(std::memory_order_relaxed);
  if (thread_id == 0) return thread.joinable();  // it has begun, but has never run
  std::ifstream file("/proc/self/task/" + std::to_string(thread_id) + "/stat");
  std::string text;
  std::getline(file, text);
  auto const name_end = text.rfind(')');  // the state follows, after a space
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] == 'R';
}

void CpuLaunch::count_time() {
  for (auto const& worker : workers()) worker->counted = worker->got();
}

// A rank that computes needs time. For ranks that wait it is enough if their worker has looked at
// what they wait for since the last question. A worker that spins elsewhere, as in a network's
// engine, gets time as well.
bool CpuLaunch::starved(std::chrono::nanoseconds least) {
  bool any = false;
  for (auto const& worker : workers()) {
    auto const got = worker->got();
    bool const computes = worker->runs.load(std::memory_order_relaxed) != Worker::nobody;
    u32 const looked = std::exchange(worker->counted.looks, got.looks);
    any |= got.time - worker->counted.time < least && (computes || got.looks == looked) &&
           worker->wants_to_run();
  }
  return any;
}

}  // namespace meshpost::cpu
