#include "net/engine.hpp"

#include <charconv>
#include <map>
#include <mutex>

#include "meshpost/base/error.hpp"
#include "net/engines.hpp"
#include "net/shuffled.hpp"

namespace meshpost::net {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, EngineFactory> all;
};
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

EngineFactory registered(std::string const& kind) {
  std::scoped_lock const lock(registry().mutex);
  auto const found = registry().all.find(kind);
  return found == registry().all.end() ? nullptr : found->second;
}

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

void register_engine(std::string const& kind, EngineFactory factory) {
  std::scoped_lock const lock(registry().mutex);
  registry().all[kind] = std::move(factory);
}

std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind) {
  auto const colon = name.find(':');
  auto const kind = name.substr(0, colon);
  auto const rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind.empty() || kind == "ofi") return make_ofi(rest, bind);
  if (kind == "shuffled") return make_shuffled(rest, bind);
  if (auto const make = registered(kind)) return make(rest, bind);
  if (kind == "mpi")
    throw Error(Kind::bad_environment, "network engine '" + name + "'",
                "this World does not know MPI's communicator",
                "link meshpost::mpi and make the World with options_over(communicator)");
  throw Error(Kind::bad_environment, "network engine '" + name + "'", "there is none of that name",
              "take ofi, ofi:PROVIDER (fi_info lists providers) or mpi");
}

}  // namespace meshpost::net
