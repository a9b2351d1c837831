// The provider as it is, and as other providers may be.
#include "net/engines/group.hpp"
#include "net/ofi/ofi.hpp"
#include "net/shuffled.hpp"

namespace meshpost::net::test {
namespace {

auto on_ofi(char const* provider, ofi::Quirks const& quirks = {}) {
  return [=] { return std::make_unique<ofi::Ofi>(provider, "", Gpus::no, quirks); };
}

}  // namespace

std::vector<Variant> variants() {
  return {{"tcp", on_ofi("tcp")},
          {"tcp_ring", on_ofi("tcp", {.ring = true})},
          {"tcp_pieces", on_ofi("tcp", {.piece = 100'000})},
          {"tcp_unordered_pieces", on_ofi("tcp", {.piece = 100'000, .unordered = true})},
          {"tcp_announced", on_ofi("tcp", {.announce = true})},
          {"tcp_announced_pieces", on_ofi("tcp", {.piece = 100'000, .announce = true})},
          {"tcp_registered", on_ofi("tcp", {.register_sources = true})},
          {"tcp_shuffled", [] { return std::make_unique<Shuffled>(on_ofi("tcp")(), 7); }},
          {"sockets", on_ofi("sockets")},
          {"sockets_by_source", on_ofi("sockets", {.by_source = true})},
          {"shm", on_ofi("shm")}};
}

}  // namespace meshpost::net::test
