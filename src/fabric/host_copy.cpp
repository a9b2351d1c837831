#include "fabric/host_copy.hpp"

// The thread sanitizer looks at a memcpy at once, at such loops word by word.
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#define MESHPOST_STREAM_STORES 1
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/cores.hpp"

namespace meshpost::fabric {
namespace {

// Waking an idle core takes 45 to 110 us, in which one thread copies about this much.
constexpr u64 alone = u64{1} << 20;
constexpr u64 page = 4096;
// From here on a copy goes past the caches, which it would only empty. Measured on a Xeon, two
// threads: at 64 MiB 13.3 GB/s against 12.2, at 512 MiB 13.0 against 7.1; below it gains nothing.
constexpr u64 past_caches = u64{64} << 20;

// memcpy whose stores don't read what they overwrite. A memcpy of the whole would do so by itself;
// one of a slice can't know.
void stream_copy(char* target, char const* source, u64 size) {
#if defined(MESHPOST_STREAM_STORES)
  constexpr u64 line = 64, word = sizeof(__m128i), pages = 4;
  u64 const head = std::min(size, (line - reinterpret_cast<std::uintptr_t>(target) % line) % line);
  std::memcpy(target, source, head);
  u64 at = head;
  auto const move_line = [&](u64 offset) {
    auto const* const from = reinterpret_cast<__m128i const*>(source + offset);
    auto* const to = reinterpret_cast<__m128i*>(target + offset);
    __m128i const parts[line / word] = {_mm_loadu_si128(from), _mm_loadu_si128(from + 1),
                                        _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3)};
    for (u64 i = 0; i < line / word; ++i) _mm_stream_si128(to + i, parts[i]);
  };
  // Several pages side by side keep more of the memory's banks busy.
  for (; at + pages * page <= size; at += pages * page)
    for (u64 i = 0; i < page; i += line)
      for (u64 k = 0; k < pages; ++k) move_line(at + k * page + i);
  for (; at + line <= size; at += line) move_line(at);
  std::memcpy(target + at, source + at, size - at);
  _mm_sfence();  // such stores keep no order by themselves: before the lock that tells of the piece
#else
  std::memcpy(target, source, size);
#endif
}

// Work of one caller. Pieces are claimed under the team's mutex, which they are large enough for;
// that also makes what they wrote visible to the caller, who sees `done` under it.
struct Job {
  std::function<void(u64)> const& work;
  u64 pieces, next = 0, done = 0;
};

}  // namespace

struct ThreadTeam::Impl {
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::list<Job*> jobs;  // with pieces that nobody has claimed
  bool closing = false;
  std::vector<std::thread> threads;

  // Claims a piece of `job`, does it without the lock, and counts it.
  void do_piece(Job& job, std::unique_lock<std::mutex>& lock) {
    u64 const piece = job.next++;
    if (job.next == job.pieces) jobs.remove(&job);
    lock.unlock();
    job.work(piece);
    lock.lock();
    // The last look at the job: its owner may return, and end it, as soon as the lock is free.
    if (++job.done == job.pieces) finished.notify_all();
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return closing || !jobs.empty(); });
      if (jobs.empty()) return;
      do_piece(*jobs.front(), lock);
      // Threads spread over the jobs that there are.
      if (jobs.size() > 1) jobs.splice(jobs.end(), jobs, jobs.begin());
    }
  }
};

ThreadTeam::ThreadTeam(u32 threads) : impl_(std::make_unique<Impl>()) {
  for (u32 i = 1; i < threads; ++i) impl_->threads.emplace_back([this] { impl_->serve(); });
}

ThreadTeam::~ThreadTeam() {
  {
    std::scoped_lock const lock(impl_->mutex);
    impl_->closing = true;
  }
  impl_->wake.notify_all();
  for (auto& thread : impl_->threads) thread.join();
}

u32 ThreadTeam::threads() const { return static_cast<u32>(impl_->threads.size()) + 1; }

void ThreadTeam::each(u64 pieces, std::function<void(u64)> const& work) {
  if (pieces == 0) return;
  if (pieces == 1 || threads() == 1) {
    for (u64 i = 0; i < pieces; ++i) work(i);
    return;
  }
  Job job{work, pieces};
  std::unique_lock lock(impl_->mutex);
  impl_->jobs.push_back(&job);
  impl_->wake.notify_all();
  while (job.next < job.pieces) impl_->do_piece(job, lock);
  impl_->finished.wait(lock, [&] { return job.done == job.pieces; });
}

void ThreadTeam::copy(void* target, void const* source, Bytes size) {
  if (size == 0) return;
  if (size <= alone || threads() == 1) {
    std::memcpy(target, source, size);  // glibc's own goes past the caches where that helps
    return;
  }
  // Slices of whole pages, several for each thread, for some will be late.
  u64 const wanted = std::clamp(size / (u64{4} * threads()), u64{128} << 10, u64{4} << 20);
  u64 const slice = (wanted + page - 1) / page * page;
  each((size + slice - 1) / slice, [&](u64 piece) {
    u64 const from = piece * slice, bytes = std::min(slice, size - from);
    auto* const to = static_cast<char*>(target) + from;
    auto const* const what = static_cast<char const*>(source) + from;
    if (size >= past_caches) stream_copy(to, what, bytes);
    else std::memcpy(to, what, bytes);
  });
}

ThreadTeam& ThreadTeam::shared() {
  static auto* const one = new ThreadTeam(std::min(cpu::usable_cores(), 16u));  // outlives main
  return *one;
}

}  // namespace meshpost::fabric
