#include "meshpost/base/error.hpp"

#include <algorithm>
#include <utility>

namespace meshpost {
namespace {

// Further lines of a cause, as who waits for whom, stand behind the remedy.
std::string text_of(Error const& error) {
  auto const& cause = error.cause();
  auto const end = std::min(cause.find('\n'), cause.size());
  return error.operation() + ": " + cause.substr(0, end) +
         (error.remedy().empty() ? "" : "; " + error.remedy()) + " [" +
         std::string(to_string(error.kind())) + "]" + cause.substr(end);
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::bad_argument: return "bad argument";
    case Kind::bad_environment: return "bad environment";
    case Kind::out_of_memory: return "out of memory";
    case Kind::no_route: return "no route";
    case Kind::device_failed: return "device failed";
    case Kind::kernel_failed: return "kernel failed";
    case Kind::deadlock: return "deadlock";
    case Kind::deadline: return "deadline";
    case Kind::peer_lost: return "peer lost";
    case Kind::misuse: return "misuse";
    case Kind::version_mismatch: return "version mismatch";
  }
  return "unknown kind";
}

Error::Error(Kind kind, std::string operation, std::string cause, std::string remedy)
    : kind_(kind),
      operation_(std::move(operation)),
      cause_(std::move(cause)),
      remedy_(std::move(remedy)),
      text_(text_of(*this)) {}

}  // namespace meshpost
