#pragma once
// What the thread sanitizer can't see: an order between two threads of this process that goes
// through another process. A thread writes memory and sends a message; the other process answers;
// another thread here takes the answer in and reads the memory. The messages order that, and the
// sanitizer, which looks at one process, reports a race. Whoever sends
// to other processes, or hears of them, calls these two, which cost nothing in other builds.

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace meshpost {

#if defined(__SANITIZE_THREAD__)
inline char told_word;  // its address names the order; nobody reads it
inline void others_are_told() { __tsan_release(&told_word); }
inline void heard_of_others() { __tsan_acquire(&told_word); }
#else
inline void others_are_told() {}
inline void heard_of_others() {}
#endif

}  // namespace meshpost
