#include "net/engine.hpp"

#include <charconv>
#include <utility>

#include "meshpost/base/error.hpp"
#include "net/engines.hpp"
#include "net/faulty.hpp"
#include "net/shuffled.hpp"

namespace meshpost::net {
namespace {

// "7:ofi:tcp": a seed, and the engine that is to be wrapped.
std::pair<u64, std::unique_ptr<Engine>> seed_and_engine(std::string const& kind,
                                                        std::string const& text,
                                                        std::string const& bind) {
  u64 seed = 0;
  auto const* const end = text.data() + text.size();
  auto const [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || (rest != end && *rest != ':'))
    throw Error(Kind::bad_environment, "network engine " + kind + ":" + text, "it wants a seed",
                "as in " + kind + ":7:ofi");
  return {seed, make_engine(rest == end ? "" : std::string(rest + 1, end), bind)};
}

// "shuffled:7:ofi:tcp": for tests of what must not depend on order.
std::unique_ptr<Engine> make_shuffled(std::string const& text, std::string const& bind) {
  auto [seed, engine] = seed_and_engine("shuffled", text, bind);
  return std::make_unique<Shuffled>(std::move(engine), seed);
}

// "faulty:flip:7:ofi:tcp": for tests of what must be found out.
std::unique_ptr<Engine> make_faulty(std::string const& text, std::string const& bind) {
  auto const name = text.substr(0, text.find(':'));
  auto const fault = fault_from(name);
  auto const rest = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  auto [seed, engine] = seed_and_engine("faulty:" + name, rest, bind);
  return std::make_unique<Faulty>(std::move(engine), fault, seed);
}

}  // namespace

std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind) {
  auto const colon = name.find(':');
  auto const kind = name.substr(0, colon);
  auto const rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind.empty() || kind == "ofi") return make_ofi(rest, bind);
  if (kind == "shuffled") return make_shuffled(rest, bind);
  if (kind == "faulty") return make_faulty(rest, bind);
  throw Error(Kind::bad_environment, "network engine '" + name + "'", "there is none of that name",
              "take ofi, or ofi:PROVIDER (fi_info lists providers)");
}

}  // namespace meshpost::net
