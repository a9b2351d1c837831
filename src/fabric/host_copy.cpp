#include "fabric/host_copy.hpp"

// The thread sanitizer checks a memcpy as a whole, but such loops word by word.
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#define MESHPOST_STREAM_STORES 1
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cores.hpp"
#include "base/thread.hpp"
#include "fabric/host_ways.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::fabric {
namespace {

constexpr u64 host_page = 4096;

// A memcpy whose stores don't read the target first, and leave the caches as they are. The C
// library's memcpy does so only from a certain size on; slices are smaller. It copies line after
// line: one processor gains from several pages side by side, others lose half of the rate.
void stream_copy(char* target, char const* source, u64 size) {
#if defined(MESHPOST_STREAM_STORES)
  constexpr u64 line = 64, word = sizeof(__m128i);
  u64 const head = std::min(size, (line - reinterpret_cast<std::uintptr_t>(target) % line) % line);
  std::memcpy(target, source, head);
  u64 at = head;
  for (; at + line <= size; at += line) {
    auto const* const from = reinterpret_cast<__m128i const*>(source + at);
    auto* const to = reinterpret_cast<__m128i*>(target + at);
    __m128i const parts[line / word] = {_mm_loadu_si128(from), _mm_loadu_si128(from + 1),
                                        _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3)};
    for (u64 i = 0; i < line / word; ++i) _mm_stream_si128(to + i, parts[i]);
  }
  std::memcpy(target + at, source + at, size - at);
  _mm_sfence();  // such stores keep no order: fence them before the lock that reports the piece
#else
  std::memcpy(target, source, size);
#endif
}

void move_bytes(void* target, void const* source, u64 from, u64 size, HostWay way) {
  auto* const to = static_cast<char*>(target) + from;
  auto const* const what = static_cast<char const*>(source) + from;
  if (way == HostWay::stream_one || way == HostWay::stream_slices) stream_copy(to, what, size);
  else std::memcpy(to, what, size);
}

// Work of one caller. Pieces are claimed under the team's mutex; they are large enough for that.
// The mutex also makes their stores visible to the caller, which sees `done` under it.
struct Job {
  std::function<void(u64)> const& work;
  u64 pieces, next = 0, done = 0;
  std::exception_ptr error{};  // the first error
};

}  // namespace

struct ThreadTeam::Impl {
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::list<Job*> jobs;  // jobs with unclaimed pieces
  bool closing = false;
  std::atomic<i64> alone_until{0};  // the others' cores were busy: ns of the steady clock
  std::vector<std::thread> threads;

  // Claims a piece of `job`, does it without the lock, and counts it.
  void do_piece(Job& job, std::unique_lock<std::mutex>& lock) {
    u64 const piece = job.next++;
    if (job.next == job.pieces) jobs.remove(&job);
    lock.unlock();
    std::exception_ptr thrown;
    try {
      job.work(piece);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown && !job.error) job.error = std::move(thrown);
    // The last access to the job: its owner may return and end it as soon as the lock is free.
    if (++job.done == job.pieces) finished.notify_all();
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return closing || !jobs.empty(); });
      if (jobs.empty()) return;
      do_piece(*jobs.front(), lock);
      // Spreads the threads over the jobs.
      if (jobs.size() > 1) jobs.splice(jobs.end(), jobs, jobs.begin());
    }
  }
};

ThreadTeam::ThreadTeam(u32 threads) : impl_(std::make_unique<Impl>()) {
  impl_->threads.reserve(threads);
  try {
    for (u32 i = 1; i < threads; ++i)
      impl_->threads.push_back(start_thread("copy on the host", [this] { impl_->serve(); }));
  } catch (...) {
    return;  // no thread, or no memory for it: the existing ones do the work, or the caller alone
  }
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
  if (job.error) std::rethrow_exception(job.error);
}

// Slices are whole pages: equal shares, or several slices for each thread, since some threads will
// be late. `done` is called by each thread after each of its slices.
void ThreadTeam::copy_slices(void* target, void const* source, u64 size, HostWay way,
                             std::function<void()> const& done) {
  u64 const wanted = way == HostWay::memcpy_shares
                         ? (size + threads() - 1) / threads()
                         : std::clamp(size / (u64{4} * threads()), u64{128} << 10, u64{4} << 20);
  u64 const slice = (wanted + host_page - 1) / host_page * host_page;
  each((size + slice - 1) / slice, [&](u64 piece) {
    move_bytes(target, source, piece * slice, std::min(slice, size - piece * slice), way);
    done();
  });
}

void ThreadTeam::copy(void* target, void const* source, Bytes size) {
  using Clock = std::chrono::steady_clock;
  auto const now = [] { return Clock::now().time_since_epoch().count(); };
  auto way = host_way(size);
  if (by_one_thread(way) || threads() == 1) return copy(target, source, size, way);
  auto const begin = now();
  if (begin < impl_->alone_until.load(std::memory_order_relaxed))
    return copy(target, source, size, host_way(size, Cores::one));
  auto last = begin;  // end of the caller's last piece
  copy_slices(target, source, size, way, [&, caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == caller) last = now();
  });
  // If the caller waits long for the others, their cores are busy with other work. It then copies
  // alone for many times the length of this copy, so that another try costs little.
  auto const end = now();
  if (end - last > (end - begin) / 3)
    impl_->alone_until.store(end + 32 * (end - begin), std::memory_order_relaxed);
}

void ThreadTeam::copy(void* target, void const* source, Bytes size, HostWay way) {
  if (size == 0) return;
  if (by_one_thread(way) || threads() == 1) move_bytes(target, source, 0, size, way);
  else copy_slices(target, source, size, way, [] {});
}

ThreadTeam& ThreadTeam::shared() {
  static auto* const one = new ThreadTeam(std::min(usable_cores(), 16u));  // outlives main
  return *one;
}

}  // namespace meshpost::fabric
