// For programs that load libfabric under the thread sanitizer. libfabric is not compiled for it. So
// the sanitizer sees the memory that libfabric's threads and their callers touch, but not what
// orders these accesses. It sees libfabric's mutexes only when they are unlocked at the end of the
// program, and would report each as misuse. To find out that this is expected takes a fifth of the
// time of processes that live as short as those of tests. So misuse of mutexes is looked for in the
// programs without libfabric, and in jobs.two_nodes. Functions that libfabric calls are ignored
// too: it clears large tables, which the sanitizer makes slow.
#if defined(__SANITIZE_THREAD__)
extern "C" char const* __tsan_default_options() { return "report_mutex_bugs=0"; }
extern "C" char const* __tsan_default_suppressions() {
  return "race:libfabric\ncalled_from_lib:libfabric\nmutex:_dl_call_fini\n";
}
#endif
