#include "net/ofi/ofi.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/tsan_order.hpp"
#include "net/misuse.hpp"

namespace meshpost::net::ofi {
namespace {

constexpr u64 operations_at_once = 256;

template <class F>
Handle<F> handle(int result, F* const& opened, std::string const& what) {
  check(result, what);
  return Handle<F>(opened);
}

// True if memory of GPUs is never copied. Most network cards' providers don't know this option:
// they never copy.
bool needs_no_copies(fid_ep* endpoint) {
  int const wanted = FI_HMEM_P2P_REQUIRED;
  int const result =
      fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &wanted, sizeof wanted);
  return result != -FI_EOPNOTSUPP && result != -FI_ENODEV;
}

[[noreturn]] void refuse(
    std::string const& what, std::string const& cause,
    char const* remedy = "pass the text that the same engine of that process returned") {
  throw Error(Kind::bad_environment, "ofi: " + what, cause, remedy);
}
constexpr char const* same_net = "give all processes the same MESHPOST_NET (WorldOptions::net)";

}  // namespace

Ofi::Ofi(std::string const& provider, std::string const& bind, Gpus gpus, Quirks const& quirks)
    : provider_(choose_provider(provider, bind, gpus, quirks)), number_(std::random_device()()) {
  bool const shared = provider_.name() == "shm";
  if (shared) remove_stale_files();  // of jobs without survivors
  fi_info* const info = provider_.info.get();
  fid_fabric* fabric = nullptr;
  fabric_ = handle(library().fabric(info->fabric_attr, &fabric, nullptr), fabric, "fi_fabric");
  fid_domain* domain = nullptr;
  domain_ = handle(fi_domain(fabric, info, &domain, nullptr), domain, "fi_domain");

  fi_av_attr table{};
  table.type =
      info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info->domain_attr->av_type;
  fid_av* addresses = nullptr;
  addresses_ = handle(fi_av_open(domain, &table, &addresses, nullptr), addresses, "fi_av_open");

  fi_cq_attr entries{};
  entries.format = FI_CQ_FORMAT_DATA;
  entries.size = 4096;
  fid_cq* queue = nullptr;
  queue_ = handle(fi_cq_open(domain, &entries, &queue, nullptr), queue, "fi_cq_open");

  auto const at = bind.empty() ? std::string() : " at " + bind;
  fid_ep* endpoint = nullptr;
  endpoint_ = handle(fi_endpoint(domain, info, &endpoint, nullptr), endpoint, "fi_endpoint" + at);
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  if (provider_.reaches_gpus && !quirks.copies && !needs_no_copies(endpoint)) {
    provider_.reaches_gpus = false;
    tell_that_none_reaches_gpus(provider_.name(), gpus);
  }
  check(fi_enable(endpoint), "fi_enable");

  memory_.emplace(domain, endpoint, provider_);
  operations_.emplace(*memory_, std::min<u64>(operations_at_once, info->tx_attr->size));
  receives_.emplace(endpoint, *memory_, provider_.multi_receive, buffer_size);
  if (!shared) return;
  shared_memory_ = shared_memory_of(native_address());
  held_ = hold_shared_memory(shared_memory_);
}

Ofi::~Ofi() {
  // Registrations that are bound to an endpoint end before it. Others end after it, because it may
  // be using them.
  if (provider_.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
    for (auto& operation : operations_->all()) operation.registration = {};
    memory_->close();
  }
  endpoint_.reset();
  if (!shared_memory_.empty()) remove_stale_files();  // of peers that were killed
}

// Other processes that talk to this one have this memory mapped.
void Ofi::abandon() noexcept {
  if (shared_memory_.empty()) return;
  shm_unlink(shared_memory_.c_str());
  remove_stale_files();
}

std::string Ofi::address() const { return to_text({provider_.name(), number_, native_address()}); }

std::string Ofi::native_address() const {
  std::string native(64, '\0');
  size_t size = native.size();
  int result = fi_getname(&endpoint_->fid, native.data(), &size);
  native.resize(size);
  if (result == -FI_ETOOSMALL) result = fi_getname(&endpoint_->fid, native.data(), &size);
  check(result, "fi_getname");
  return native;
}

void Ofi::connect(std::vector<std::string> const& addresses) {
  check_first_connect("ofi", !peers_.empty());
  std::vector<Peer> peers(addresses.size());
  for (u32 peer = 0; peer < peers.size(); ++peer) {
    if (addresses[peer].empty()) continue;
    auto const attempted = "connect to peer " + std::to_string(peer);
    auto const address = address_from(addresses[peer]);
    if (!address)
      refuse(attempted, "'" + addresses[peer] + "' is no address of this engine", same_net);
    if (address->provider != provider_.name())
      refuse(attempted, "it uses " + address->provider + ", this process " + provider_.name(),
             same_net);
    // The provider is the same, so the kind of address is too. An address of another size would be
    // read beyond its end. Addresses that are texts (shm) end with a zero byte, and their length
    // depends on the numbers in them.
    bool const is_text = provider_.info->addr_format == FI_ADDR_STR;
    if (is_text ? !address->native.ends_with('\0')
                : address->native.size() != address_from(this->address())->native.size())
      refuse(attempted, "'" + addresses[peer] + "' has another kind of address");
    if (address->number == number_ || !by_number_.emplace(address->number, peer).second)
      refuse(attempted, "two engines have drawn one number; start again");
    auto& known = peers[peer];
    if (fi_av_insert(addresses_.get(), address->native.data(), 1, &known.address, 0, nullptr) != 1)
      refuse(attempted, "libfabric does not accept the address '" + addresses[peer] + "'");
    known.talked_to = true;
    known.native = address->native;
    by_address_[known.address] = peer;
  }
  peers_ = std::move(peers);
}

Ofi::Peer& Ofi::talked_to(u32 peer, char const* operation) {
  return known_peer(peers_, peer, "ofi", operation);
}

std::string Ofi::expose(void* memory, Bytes size) {
  check_exposed("ofi", memory, size);
  return to_text(memory_->expose(memory, size));
}

std::string Ofi::expose_device(void* memory, Bytes size, std::string_view kind, u32 index) {
  if (!reaches(kind)) return Engine::expose_device(memory, size, kind, index);
  check_exposed("ofi", memory, size);
  return to_text(memory_->expose(memory, size, index));
}

RemoteMemory Ofi::import(u32 peer, std::string const& exposed) {
  talked_to(peer, "import");
  auto const memory = memory_from(exposed);
  if (!memory)
    refuse("import of peer " + std::to_string(peer), "'" + exposed + "' is no exposed memory");
  return *memory;
}

}  // namespace meshpost::net::ofi
