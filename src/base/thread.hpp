#pragma once
#include <functional>
#include <string>
#include <thread>

namespace meshpost {

/// Starts a thread of the library. `purpose`, such as "copy", is for the error and for tests. Their
/// hook (host_hooks.hpp) gets "start a thread to " and the purpose. Nothing has begun if it
/// throws. Thread-safe. \throws Error(out_of_memory) if the system has no thread to give
std::thread start_thread(std::string const& purpose, std::function<void()> work);

}  // namespace meshpost
