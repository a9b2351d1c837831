#pragma once
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// Checks for every engine, with the same words. `engine`: its kind, as in "ofi".

namespace meshpost::net {

/// \throws Error(misuse) if it was connected before
void check_first_connect(std::string const& engine, bool connected);
/// \throws Error(bad_argument) that names both sizes
void check_message(std::string const& engine, u64 size, u64 most);
/// \throws Error(bad_argument) if there is nothing to expose
void check_exposed(std::string const& engine, void const* memory, Bytes size);
[[noreturn]] void refuse_peer(std::string const& engine, std::string const& operation, u32 peer);

/// The peer with that number.
/// \throws Error(bad_argument) if it was given no address
template <class Peer>
Peer& known_peer(std::vector<Peer>& peers, u32 peer, char const* engine, char const* operation) {
  if (peer < peers.size() && peers[peer].talked_to) return peers[peer];
  refuse_peer(engine, operation, peer);
}

}  // namespace meshpost::net
