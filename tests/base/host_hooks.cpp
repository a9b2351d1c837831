#include "base/host_hooks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace meshpost {
namespace {

// Threads of the library serve the whole process, so they reach places at any time.
TEST(HostHooks, are_installed_and_removed_while_threads_call_them) {
  std::atomic<bool> ends{false};
  std::atomic<int> calls{0};
  std::thread caller([&] {
    while (!ends) hooks::at("a place of this test");
  });
  for (int i = 0; i < 100; ++i) {
    auto const before = calls.load();
    hooks::install_host_hook([&calls, step = std::make_shared<int>(1)](std::string_view place) {
      if (place == "a place of this test") calls += *step;
    });
    while (calls == before) std::this_thread::yield();
    hooks::install_host_hook(nullptr);
  }
  ends = true;
  caller.join();
}

}  // namespace
}  // namespace meshpost
