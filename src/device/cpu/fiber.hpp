#pragma once
// A fiber: a stack and a place to continue from (Boost.Context), with annotations that let
// sanitizers follow.
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define MESHPOST_UNCHECKED __attribute__((no_sanitize("thread")))
#else
#define MESHPOST_UNCHECKED
#endif

namespace meshpost::cpu {

/// A stack with a guard page below; taken from and returned to a pool.
class Stack {
 public:
  explicit Stack(std::size_t size);
  ~Stack();
  Stack(Stack const&) = delete;
  Stack& operator=(Stack const&) = delete;
  char* low() const { return low_; }
  char* high() const { return low_ + size_; }
  std::size_t size() const { return size_; }

 private:
  char* low_;
  std::size_t size_;
};

/// One side of a switch: either a worker thread's own stack, or a fiber's.
class Context {
 public:
  /// The context of the calling thread; filled in when it is switched away from.
  Context() = default;
  ~Context() { retire(); }
  Context(Context const&) = delete;
  Context& operator=(Context const&) = delete;

  /// Makes this a fiber that calls `body(argument)`, which must end with a last switch_to. May be
  /// called again when it has ended, on any thread.
  void prepare(Stack& stack, void (*body)(void*), void* argument);
  /// If it was a fiber, it has ended: gives back what a sanitizer keeps for it.
  void retire();
  /// Call on the thread that owns this context before the first switch away from it.
  void adopt_thread();
  /// Continues with `next`; returns when another context switches back here. `last`: none ever
  /// will.
  MESHPOST_UNCHECKED void switch_to(Context& next, bool last = false);

 private:
  MESHPOST_UNCHECKED static void enter(boost::context::detail::transfer_t transfer);
  MESHPOST_UNCHECKED void jump(Context& next);

  boost::context::detail::fcontext_t resume_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  void* caught_exceptions_ = nullptr;  // the thread's exception state is the running context's
  unsigned uncaught_exceptions_ = 0;
  void const* stack_low_ = nullptr;
  std::size_t stack_size_ = 0;
  [[maybe_unused]] void* sanitizer_fiber_ = nullptr;
  [[maybe_unused]] bool owns_sanitizer_fiber_ = false;
  bool started_ = true;
};

}  // namespace meshpost::cpu
