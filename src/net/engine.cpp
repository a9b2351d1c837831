#include "net/engine.hpp"

#include <charconv>

#include "meshpost/base/error.hpp"
#include "net/engines.hpp"
#include "net/shuffled.hpp"

namespace meshpost::net {
namespace {

// "shuffled:7:ofi:tcp": for tests of what must not depend on order.
std::unique_ptr<Engine> make_shuffled(std::string const& text, std::string const& bind) {
  u64 seed = 0;
  auto const* const end = text.data() + text.size();
  auto const [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || (rest != end && *rest != ':'))
    throw Error(Kind::bad_environment, "network engine shuffled:" + text, "it wants a seed",
                "as in shuffled:7:ofi");
  return std::make_unique<Shuffled>(
      make_engine(rest == end ? "" : std::string(rest + 1, end), bind), seed);
}

}  // namespace

std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind) {
  auto const colon = name.find(':');
  auto const kind = name.substr(0, colon);
  auto const rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind.empty() || kind == "ofi") return make_ofi(rest, bind);
  if (kind == "shuffled") return make_shuffled(rest, bind);
  throw Error(Kind::bad_environment, "network engine '" + name + "'", "there is none of that name",
              "take ofi, or ofi:PROVIDER (fi_info lists providers)");
}

}  // namespace meshpost::net
