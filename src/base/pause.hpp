#pragma once

namespace meshpost {

/// Between two looks at a word that another core, or a device, writes.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

}  // namespace meshpost
