#pragma once
// An order that the thread sanitizer can't see: between two threads of this process, through
// another process. A thread writes memory and sends a message. The other process answers. Another
// thread here receives the answer and reads the memory. The messages order that. The sanitizer
// looks at one process only, and reports a race. Code that sends to other processes, or receives
// from them, calls these two functions. In other builds they cost nothing.

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
