#include "device/cpu/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshpost/base/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace meshpost::cpu {
namespace {

// Free stacks, by size. To map one costs more than to run a short rank on it.
class StackPool {
 public:
  char* take(std::size_t size) {
    {
      std::scoped_lock const lock(mutex_);
      auto& free = free_[size];
      if (!free.empty()) {
        char* const low = free.back();
        free.pop_back();
        return low;
      }
    }
    auto const guard = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const whole = mmap(nullptr, size + guard, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (whole == MAP_FAILED || mprotect(whole, guard, PROT_NONE) != 0)
      throw Error(Kind::out_of_memory, "launch on a CPU device",
                  "no stack of " + std::to_string(size) +
                      " bytes for a rank's thread: " + std::strerror(errno),
                  "use fewer ranks or threads of a rank, or raise vm.max_map_count");
    return static_cast<char*>(whole) + guard;
  }
  void give(char* low, std::size_t size) {
    std::scoped_lock const lock(mutex_);
    free_[size].push_back(low);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<char*>> free_;
};

StackPool& pool() {
  static auto* const one = new StackPool;  // outlives every thread
  return *one;
}

// The state of exceptions that the C++ runtime keeps for each thread (Itanium C++ ABI, 2.2.2). A
// fiber that waits inside a catch block must find its own state again.
struct ExceptionState {
  void* caught;
  unsigned uncaught;
};
ExceptionState& exception_state() {
  return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

#if defined(__SANITIZE_THREAD__)
thread_local bool sanitizer_fibers_are_gone = false;  // this thread is about to end

// ThreadSanitizer's fibers that have ended: it takes some 0.3 ms to make one. They serve the thread
// again that has seen them end. So all that they saw is before what they do next, and no race is
// hidden.
class SanitizerFibers {
 public:
  ~SanitizerFibers() {
    for (void* fiber : ended_) __tsan_destroy_fiber(fiber);
    sanitizer_fibers_are_gone = true;
  }
  void* take() {
    if (sanitizer_fibers_are_gone || ended_.empty()) return __tsan_create_fiber(0);
    void* const fiber = ended_.back();
    ended_.pop_back();
    return fiber;
  }
  void give(void* fiber) {
    if (sanitizer_fibers_are_gone || ended_.size() == most) __tsan_destroy_fiber(fiber);
    else ended_.push_back(fiber);
  }

 private:
  static constexpr std::size_t most = 256;  // of 8128 that there may be
  std::vector<void*> ended_;
};
thread_local SanitizerFibers sanitizer_fibers;
#endif

struct Transfer {
  Context* from;
  Context* to;
};

}  // namespace

Stack::Stack(std::size_t size) : low_(pool().take(size)), size_(size) {}
Stack::~Stack() { pool().give(low_, size_); }

void Context::retire() {
#if defined(__SANITIZE_THREAD__)
  if (owns_sanitizer_fiber_) sanitizer_fibers.give(sanitizer_fiber_);
  owns_sanitizer_fiber_ = false;
#endif
}

void Context::prepare(Stack& stack, void (*body)(void*), void* argument) {
  retire();
#if defined(__SANITIZE_ADDRESS__)
  // The last frames of the stack's previous fiber never returned.
  ASAN_UNPOISON_MEMORY_REGION(stack.low(), stack.size());
#endif
  body_ = body;
  argument_ = argument;
  caught_exceptions_ = nullptr;
  uncaught_exceptions_ = 0;
  stack_low_ = stack.low();
  stack_size_ = stack.size();
  resume_ = boost::context::detail::make_fcontext(stack.high(), stack.size(), enter);
  started_ = false;
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber_ = sanitizer_fibers.take();
  owns_sanitizer_fiber_ = true;
#endif
}

void Context::adopt_thread() {
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* low = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &stack_size_);
  pthread_attr_destroy(&attributes);
  stack_low_ = low;
#endif
}

void Context::enter(boost::context::detail::transfer_t transfer) {
  auto const* const who = static_cast<Transfer*>(transfer.data);
  who->from->resume_ = transfer.fctx;
  Context* const self = who->to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  self->body_(self->argument_);
  std::abort();  // the body's last act is to switch away
}

void Context::jump(Context& next) {
  Transfer who{this, &next};
  auto const back = boost::context::detail::jump_fcontext(next.resume_, &who);
  static_cast<Transfer*>(back.data)->from->resume_ = back.fctx;
}

void Context::switch_to(Context& next, [[maybe_unused]] bool last) {
  auto& exceptions = exception_state();
  caught_exceptions_ = exceptions.caught;
  uncaught_exceptions_ = exceptions.uncaught;
  exceptions = {next.caught_exceptions_, next.uncaught_exceptions_};
#if defined(__SANITIZE_THREAD__)
  // Flag 1: the switch itself orders nothing, so that a race between two ranks of one worker is
  // found. Only a fiber's first entry and its end are ordered with the worker.
  unsigned const unordered = next.started_ && !last ? 1 : 0;
  next.started_ = true;
  __tsan_switch_to_fiber(next.sanitizer_fiber_, unordered);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, next.stack_low_, next.stack_size_);
#endif
  jump(next);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

}  // namespace meshpost::cpu
