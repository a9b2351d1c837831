#include "predict.hpp"

#include <meshpost/copy/route.hpp>

#include <fstream>
#include <sstream>

namespace bandwidth {

using namespace meshpost;

namespace {

// Copies take one link if they are small, within host memory, or within a device.
bool takes_one_link(Place const& from, Place const& to, Bytes size) {
  return size < least_routed || from == to || (in_host_memory(from) && in_host_memory(to));
}

std::string path_of(Machine const& machine, Route const& route) {
  std::string text;
  for (auto const& chain : route.chains) {
    if (!text.empty()) text += " | ";
    text += machine.places[machine.links[chain.links.front()].from].place.name();
    for (u32 const link : chain.links)
      text += " > " + machine.places[machine.links[link].to].place.name();
  }
  return text;
}

// False if nothing joins the two.
bool predict_one(Result& result, Machine const& machine) {
  auto const from = machine.find(result.from), to = machine.find(result.to);
  if (!from || !to) return false;
  auto const* const link = machine.link(*from, *to);
  if (link && link->rate > 0 && takes_one_link(result.from, result.to, result.size)) {
    result.seconds = link->latency + static_cast<double>(result.size.value) / link->rate;
    result.path = result.from.name() + " > " + result.to.name();
  } else {
    try {
      auto const route = plan_route(machine, result.from, result.to, result.size);
      result.seconds = route.predicted;
      result.path = path_of(machine, route);
    } catch (Error const& error) {
      if (error.kind() != Kind::no_route) throw;
      return false;
    }
  }
  result.least = result.seconds;
  return true;
}

}  // namespace

std::vector<Result> predict(Machine const& machine, std::vector<Place> const& places,
                            std::vector<Bytes> const& sizes, std::string const& variant) {
  std::vector<Result> all;
  for (auto const& from : places)
    for (auto const& to : places)
      for (auto const size : sizes) {
        Result result{from, to, variant, size, 0, 0, false, ""};
        if (predict_one(result, machine)) all.push_back(std::move(result));
      }
  return all;
}

Machine read_machine(std::string const& option, std::string const& file) {
  auto const what = option + " " + file;
  std::ifstream in(file);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || !text.good())
    throw Error(Kind::bad_argument, what, "it can't be read",
                "name a file that ./run app topo wrote, such as out/topo/machine.json");
  Machine machine;
  try {
    machine = machine_from_json(text.str());
  } catch (Error const& error) {
    throw Error(Kind::bad_argument, what + ": " + error.operation(), error.cause(), error.remedy());
  }
  for (auto const& link : machine.links)
    if (!(link.rate > 0))
      throw Error(Kind::bad_argument, what,
                  "the link from " + machine.places[link.from].place.name() + " to " +
                      machine.places[link.to].place.name() + " (" +
                      std::string(to_string(link.mover)) + ") has rate " +
                      std::to_string(link.rate),
                  "write its bytes/s, or remove the link");
  return machine;
}

}  // namespace bandwidth
