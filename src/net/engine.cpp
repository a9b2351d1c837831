#include "net/engine.hpp"

#include <charconv>
#include <map>
#include <mutex>
#include <utility>

#include "meshpost/base/error.hpp"
#include "net/engines.hpp"
#include "net/faulty.hpp"
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

// "7:ofi:tcp": a seed, and the engine to wrap.
std::pair<u64, std::unique_ptr<Engine>> seed_and_engine(std::string const& kind,
                                                        std::string const& text,
                                                        std::string const& bind, Gpus gpus) {
  u64 seed = 0;
  auto const* const end = text.data() + text.size();
  auto const [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || (rest != end && *rest != ':'))
    throw Error(Kind::bad_environment, "network engine " + kind + ":" + text, "it wants a seed",
                "as in " + kind + ":7:ofi");
  return {seed, make_engine(rest == end ? "" : std::string(rest + 1, end), bind, gpus)};
}

// "shuffled:7:ofi:tcp": for tests of code that must not depend on order.
std::unique_ptr<Engine> make_shuffled(std::string const& text, std::string const& bind, Gpus gpus) {
  auto [seed, engine] = seed_and_engine("shuffled", text, bind, gpus);
  return std::make_unique<Shuffled>(std::move(engine), seed);
}

// "faulty:flip:7:ofi:tcp": for tests of faults that must be detected.
std::unique_ptr<Engine> make_faulty(std::string const& text, std::string const& bind, Gpus gpus) {
  auto const name = text.substr(0, text.find(':'));
  auto const fault = fault_from(name);
  auto const rest = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  auto [seed, engine] = seed_and_engine("faulty:" + name, rest, bind, gpus);
  return std::make_unique<Faulty>(std::move(engine), fault, seed);
}

}  // namespace

void register_engine(std::string const& kind, EngineFactory factory) {
  std::scoped_lock const lock(registry().mutex);
  registry().all[kind] = std::move(factory);
}

std::string Engine::expose_device(void* /*memory*/, Bytes /*size*/, std::string_view kind,
                                  u32 index) {
  throw Error(Kind::bad_environment,
              "expose memory of " + std::string(kind) + ":" + std::to_string(index),
              name() + " does not reach memory of such devices", "expose memory of the host");
}

std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind, Gpus gpus) {
  auto const colon = name.find(':');
  auto const kind = name.substr(0, colon);
  auto const rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind.empty() || kind == "ofi") return make_ofi(rest, bind, gpus);
  // Processes without GPUs may get the same name as others.
  if (kind == "direct") return make_engine(rest, bind, gpus == Gpus::no ? gpus : Gpus::yes);
  if (kind == "staged") return make_engine(rest, bind, Gpus::no);
  if (kind == "shuffled") return make_shuffled(rest, bind, gpus);
  if (kind == "faulty") return make_faulty(rest, bind, gpus);
  if (auto const make = registered(kind)) return make(rest, bind, gpus);
  if (kind == "mpi")
    throw Error(Kind::bad_environment, "network engine '" + name + "'",
                "this World does not know MPI's communicator",
                "link meshpost::mpi and make the World with options_over(communicator)");
  throw Error(
      Kind::bad_environment, "network engine '" + name + "'", "there is none of that name",
      "take ofi, ofi:PROVIDER (fi_info lists providers), direct: or staged: before either, or "
      "mpi, in MESHPOST_NET or WorldOptions::net");
}

}  // namespace meshpost::net
