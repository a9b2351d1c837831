#pragma once
#include <string>

#include "meshpost/base/types.hpp"
#include "net/engine.hpp"
#include "net/ofi/handles.hpp"

// Which of libfabric's providers is used, and what it can do.

namespace meshpost::net::ofi {

/// How the target of a write learns who has written. Providers differ in what they report with a
/// write.
enum class Telling {
  number_in_data,  ///< 8 bytes: the writer's number and the caller's data
  source,          ///< 4 bytes, and the address of the writer
  message          ///< nothing: a message follows once the bytes are known to be there
};

/// Tests set these, so that a provider behaves in another way.
struct Quirks {
  u64 piece = ~u64{0};            ///< writes are cut into pieces of this size
  bool unordered = false;         ///< pieces may overtake each other
  bool announce = false;          ///< Telling::message
  bool by_source = false;         ///< Telling::source
  bool register_sources = false;  ///< FI_MR_LOCAL
  bool ring = false;              ///< a receive buffer for each message
  bool copies = false;            ///< use providers for GPUs' memory even if they copy
};

struct Provider {
  Info info;
  Telling telling = Telling::message;
  bool multi_receive = false;  ///< one buffer takes many messages
  bool ordered = false;        ///< a write is not seen before an earlier one
  bool register_sources = false;
  bool reaches_gpus = false;  ///< memory of GPUs can be registered (FI_HMEM)
  /// Data goes in a write of its own, after the bytes. Reason: a connection may end while a write
  /// with data arrives. Its report then makes ofi_rxm use a null pointer, and the process crashes
  /// (seen with libfabric 1.17). A write without bytes arrives whole.
  bool separate_data = false;
  u64 piece = 0;  ///< largest write

  /// True if its addresses are those of listening TCP sockets.
  bool listens_on_tcp() const { return name().starts_with("tcp") || name().starts_with("net"); }
  std::string name() const { return info->fabric_attr->prov_name; }
};

/// Throws if GPUs must be reached and can't be, else warns.
/// \throws Error(bad_environment)
void tell_that_none_reaches_gpus(std::string const& provider, Gpus gpus);

/// The best provider for `bind` (empty: loopback), or the one named ("tcp" is also "tcp;ofi_rxm").
/// \throws Error(bad_environment) that names the available ones; or if it must reach GPUs and
/// doesn't
Provider choose_provider(std::string const& named, std::string const& bind, Gpus gpus,
                         Quirks const& quirks);

}  // namespace meshpost::net::ofi
