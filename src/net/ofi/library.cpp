#include "net/ofi/library.hpp"

#include <dlfcn.h>

#include <array>
#include <csignal>
#include <string>

#include "meshpost/base/error.hpp"

// Loaded, not linked. A program that stays on one host needs neither libfabric nor the dozen
// libraries that it brings. Some of these act as soon as they are loaded.

namespace meshpost::net::ofi {
namespace {

// PSM, for one, catches signals of a program that has only loaded it. This class restores the
// program's handlers.
class KeepSignals {
 public:
  KeepSignals() {
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
  }
  ~KeepSignals() {
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  KeepSignals(KeepSignals const&) = delete;
  KeepSignals& operator=(KeepSignals const&) = delete;

 private:
  static constexpr std::array signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM};
  std::array<struct sigaction, signals.size()> before_{};
};

[[noreturn]] void missing(std::string const& cause) {
  throw Error(Kind::bad_environment, "network engine ofi", cause,
              "install libfabric (Debian, Ubuntu: libfabric1)");
}

template <class Function>
void find(void* loaded, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(loaded, name));
  if (!function) missing(std::string("libfabric.so.1 has no ") + name);
}

Library load() {
  KeepSignals const kept;
  void* const loaded = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loaded) missing(dlerror());
  Library all;
  find(loaded, "fi_getinfo", all.getinfo);
  find(loaded, "fi_freeinfo", all.freeinfo);
  find(loaded, "fi_dupinfo", all.dupinfo);
  find(loaded, "fi_fabric", all.fabric);
  find(loaded, "fi_strerror", all.strerror);
  fi_info* found = nullptr;  // loads the providers
  if (all.getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, nullptr, &found) == 0)
    all.freeinfo(found);
  return all;
}

}  // namespace

Library const& library() {
  static Library const loaded = load();
  return loaded;
}

}  // namespace meshpost::net::ofi
