#include "meshpost/fabric/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost {

bool in_host_memory(Place const& place) {
  return place.on_host() || traits_of(place.kind).in_host_memory;
}

Place parse_place(std::string const& name) {
  auto const colon = name.find(':');
  auto const kind = name.substr(0, colon);
  bool const named = !kind.empty() && std::ranges::all_of(kind, [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_';
  });
  auto const number = colon == std::string::npos
                          ? std::nullopt
                          : parse_number(std::string_view(name).substr(colon + 1));
  if (!named || !number || *number > ~u32{0})
    throw Error(Kind::bad_argument, fmt::format("place '{}'", name),
                "it is not a kind and a number with a colon between",
                "write pageable:0, pinned:0, cuda:1 or cpu:1");
  return {kind, static_cast<u32>(*number)};
}

}  // namespace meshpost
