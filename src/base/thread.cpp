#include "base/thread.hpp"

#include <system_error>
#include <utility>

#include "base/caught.hpp"
#include "base/host_hooks.hpp"

namespace meshpost {

std::thread start_thread(std::string const& purpose, std::function<void()> work) {
  auto const operation = "start a thread to " + purpose;
  try {
    hooks::at(operation);
    return std::thread(std::move(work));
  } catch (std::system_error const&) {
    throw caught(operation);
  }
}

}  // namespace meshpost
