#pragma once
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/host_hooks.hpp"

namespace meshpost::test {

/// While it lives, the system refuses threads of the library if `refuses` returns true. Its
/// argument is the purpose of the thread: "copy". No such thread may be starting when this object
/// is made or destroyed.
struct NoThreads {
  explicit NoThreads(std::function<bool(std::string_view purpose)> refuses) {
    hooks::install_host_hook([refuses = std::move(refuses)](std::string_view place) {
      constexpr std::string_view start = "start a thread to ";
      if (place.starts_with(start) && refuses(place.substr(start.size())))
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    });
  }
  explicit NoThreads(char const* purpose)
      : NoThreads([purpose](std::string_view asked) { return asked == purpose; }) {}
  ~NoThreads() { hooks::install_host_hook(nullptr); }
  NoThreads(NoThreads const&) = delete;
  NoThreads& operator=(NoThreads const&) = delete;
};

}  // namespace meshpost::test
