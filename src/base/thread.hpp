#pragma once
#include <functional>
#include <string>
#include <thread>

namespace meshpost {

/// Starts a thread of the library. `purpose` is for the error and for tests, whose hook
/// (host_hooks.hpp) is told "start a thread to " and that: "copy". Nothing has begun if it throws.
/// Thread-safe. \throws Error(out_of_memory) where the system has no thread to give
std::thread start_thread(std::string const& purpose, std::function<void()> work);

}  // namespace meshpost
