#pragma once
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/host_hooks.hpp"

namespace meshpost::test {

/// While it lives, the system refuses the library threads as `refuses` says, which is told what
/// they are to do: "copy". No such thread may be about to be started when it begins and ends.
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
