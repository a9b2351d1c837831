// For programs that load libfabric under the thread sanitizer. It is not compiled for it: the
// sanitizer sees what its threads and those that call it touch, and not what orders that; and its
// mutexes only from when they are unlocked as the program ends. What it calls is not looked at
// either: it clears large tables, which the sanitizer makes slow.
#if defined(__SANITIZE_THREAD__)
extern "C" char const* __tsan_default_suppressions() {
  return "race:libfabric\ncalled_from_lib:libfabric\nmutex:_dl_call_fini\n";
}
#endif
