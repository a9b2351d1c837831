#include "meshpost/compat/dscuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/copy/copy.hpp"

namespace {

using namespace meshpost;

thread_local std::string dscuda_error;

std::mutex handler_mutex;
void (*handler)(void*) = nullptr;
void* handler_argument = nullptr;

void keep_error(char const* text) noexcept {
  try {
    dscuda_error = text;
  } catch (...) {
    dscuda_error.clear();  // no memory for the text: the failure is still reported
  }
}

// Callers may be written in C: an exception of the handler ends here, with a warning.
void call_handler() noexcept {
  void (*called)(void*) = nullptr;
  void* argument = nullptr;
  {
    std::scoped_lock const lock(handler_mutex);
    called = handler, argument = handler_argument;
  }
  if (!called) return;
  try {
    std::string what;
    try {
      called(argument);
      return;
    } catch (std::exception const& error) {
      what = error.what();
    } catch (...) {
      what = "something that is not a std::exception";
    }
    warn(fmt::format("the handler of dscudaSetErrorHandler threw; this is ignored: {}", what));
  } catch (...) {
    return;  // no memory for it: the code returned and dscudaLastError() have the first failure
  }
}

// Runs `work`. An exception becomes the code, the text, and a call of the handler.
template <class Work>
int guarded(Work&& work) noexcept {
  int code = -1;
  try {
    work();
    return 0;
  } catch (Error const& error) {
    code = static_cast<int>(error.kind()) + 1;
    keep_error(error.what());
  } catch (std::exception const& error) {
    keep_error(error.what());
  } catch (...) {
    keep_error("something that is not a std::exception was thrown");
  }
  call_handler();
  return code;
}

[[noreturn]] void refuse_call(char const* operation, std::string cause, char const* remedy) {
  throw Error(Kind::bad_argument, operation, std::move(cause), remedy);
}

u64 checked(char const* operation, char const* what, int value) {
  if (value < 0) refuse_call(operation, fmt::format("{} is {}", what, value), "give 0 or more");
  return static_cast<u64>(value);
}

void copy_all(char const* operation, void** targets, void** sources, auto const& size,
              std::size_t count) {
  if (count != 0 && (!targets || !sources))
    refuse_call(operation, "a list is null", "give both lists");
  std::vector<Segment> segments(count);
  for (std::size_t i = 0; i < count; ++i) segments[i] = {targets[i], sources[i], Bytes{size(i)}};
  copy_batch(segments, {Overlap::refuse, {}}).wait();
}

// Targets are written in rounds, so no batch sees all of them. They are compared here.
void check_apart(void** targets, void const* source, u64 size, std::size_t count) {
  std::vector<u64> begins;
  if (size != 0 && source) begins.push_back(reinterpret_cast<u64>(source));
  for (std::size_t i = 0; i < count; ++i) begins.push_back(reinterpret_cast<u64>(targets[i]));
  std::sort(begins.begin(), begins.end());
  for (std::size_t i = 1; i < begins.size(); ++i)
    if (begins[i] - begins[i - 1] < size)
      refuse_call("dscudaBroadcast",
                  fmt::format("buffers at {:#x} and {:#x} of {} bytes overlap", begins[i - 1],
                              begins[i], size),
                  "give each its own memory");
}

void broadcast(void** targets, void* source, u64 size, std::size_t count) {
  if (count != 0 && !targets)
    refuse_call("dscudaBroadcast", "the list of targets is null", "give it");
  check_apart(targets, source, size, count);
  // After each round twice as many have the bytes. Holder i is the source, then the targets in
  // order.
  auto const holder = [&](std::size_t i) { return i == 0 ? source : targets[i - 1]; };
  for (std::size_t have = 1; have < count + 1; have *= 2) {
    std::vector<Segment> round;
    for (std::size_t i = 0; i < have && have + i < count + 1; ++i)
      round.push_back({holder(have + i), holder(i), Bytes{size}});
    copy_batch(round, {Overlap::refuse, {}}).wait();
  }
}

}  // namespace

extern "C" {

int dscudaMemcopies(void** dbufs, void** sbufs, int* counts, int ncopies) {
  return guarded([&] {
    auto const copies = checked("dscudaMemcopies", "ncopies", ncopies);
    if (copies != 0 && !counts) refuse_call("dscudaMemcopies", "counts is null", "give all lists");
    copy_all(
        "dscudaMemcopies", dbufs, sbufs,
        [&](std::size_t i) { return checked("dscudaMemcopies", "a count", counts[i]); }, copies);
  });
}

int dscudaMemcopies64(void** dbufs, void** sbufs, const size_t* counts, size_t ncopies) {
  return guarded([&] {
    if (ncopies != 0 && !counts)
      refuse_call("dscudaMemcopies64", "counts is null", "give all lists");
    copy_all("dscudaMemcopies64", dbufs, sbufs, [&](std::size_t i) { return counts[i]; }, ncopies);
  });
}

int dscudaBroadcast(void** dbufs, void* sbuf, int count, int ncopies) {
  return guarded([&] {
    broadcast(dbufs, sbuf, checked("dscudaBroadcast", "count", count),
              checked("dscudaBroadcast", "ncopies", ncopies));
  });
}

int dscudaBroadcast64(void** dbufs, void* sbuf, size_t count, size_t ncopies) {
  return guarded([&] { broadcast(dbufs, sbuf, count, ncopies); });
}

void dscudaSetErrorHandler(void (*wanted)(void*), void* argument) {
  std::scoped_lock const lock(handler_mutex);
  handler = wanted, handler_argument = argument;
}

const char* dscudaLastError(void) { return dscuda_error.c_str(); }

}  // extern "C"
