#include "net/ofi/provider.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "meshpost/base/events.hpp"

namespace meshpost::net::ofi {
namespace {

constexpr u64 needed = FI_MSG | FI_RMA;

// All providers with the needed capabilities, best first; null if there is none.
Info ask(u64 capabilities, char const* node, std::string const& provider = {}) {
  Info const hints(library().dupinfo(nullptr));
  hints->caps = capabilities;
  // Freed with the hints. With a name, the other providers need not be asked.
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (capabilities & FI_HMEM) hints->domain_attr->mr_mode |= FI_MR_HMEM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  fi_info* found = nullptr;
  int const result = library().getinfo(FI_VERSION(1, 14), node, nullptr, node ? FI_SOURCE : 0,
                                       hints.get(), &found);
  return Info(result == 0 ? found : nullptr);
}

bool is_named(std::string const& provider, std::string const& name) {
  return provider == name || provider.starts_with(name + ";");
}

// Providers that are used only on request: for one host alone, emulations, and those that libfabric
// calls experimental or deprecated.
bool on_request(std::string const& provider) {
  return provider == "shm" || provider == "sockets" || is_named(provider, "net") ||
         provider.find("ofi_rxd") != std::string::npos;
}

bool has_internet_address(fi_info const& info) {
  return info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
         info.addr_format == FI_SOCKADDR_IN6;
}

template <class Fits>
Info first(Info const& all, Fits const& fits) {
  for (fi_info* info = all.get(); info; info = info->next)
    if (fits(*info)) return Info(library().dupinfo(info));
  return nullptr;
}

// Finds a provider by the address of its node, or by its own kind of address if the fabric has one.
Info find(std::string const& named, char const* node, bool loopback, u64 capabilities,
          std::string const& exactly) {
  auto const wanted = [&](fi_info const& info) {
    std::string const name = info.fabric_attr->prov_name;
    return named.empty() ? !on_request(name) : is_named(name, named);
  };
  auto const native = [&](fi_info const& info) {
    return wanted(info) && !has_internet_address(info);
  };
  if (!loopback || !named.empty())
    if (auto info = first(ask(capabilities, nullptr, exactly), native)) return info;
  return first(ask(capabilities, node, exactly), wanted);
}

std::string providers(char const* node) {
  std::set<std::string> names;
  for (char const* const by : {node, static_cast<char const*>(nullptr)}) {
    Info const all = ask(needed, by);
    for (fi_info const* info = all.get(); info; info = info->next)
      names.insert(info->fabric_attr->prov_name);
  }
  std::string text;
  for (auto const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

bool both(fi_info const& info, u64 order) {
  return (info.tx_attr->msg_order & info.rx_attr->msg_order & order) == order;
}

// True if a network card reads and writes memory of GPUs: it does where the driver allows it. For
// other providers the library copies. Then it waits for all work of the GPU (libfabric 2.1), also
// for kernels that wait for the copied bytes.
bool moves_by_itself(std::string const& provider) {
  return std::ranges::any_of(std::array{"verbs", "efa", "cxi", "psm3", "opx"},
                             [&](char const* one) { return provider.starts_with(one); });
}

// libfabric leaves out shm if there is no room for it, and does not say so.
std::string room_for_shm() {
  struct statvfs there{};
  bool const is_full = statvfs("/dev/shm", &there) == 0 && there.f_bavail == 0;
  return is_full ? "; /dev/shm has no room: remove unused files there, or choose another provider"
                 : "";
}

}  // namespace

void tell_that_none_reaches_gpus(std::string const& provider, Gpus gpus) {
  auto const cause =
      "libfabric's " + provider + " does not read and write memory of GPUs by itself";
  auto const remedy =
      "take a network card's provider, of a libfabric that was built with CUDA "
      "('fi_info -c FI_HMEM' lists some)";
  if (gpus == Gpus::yes)
    throw Error(Kind::bad_environment, "network engine direct:ofi:" + provider, cause,
                std::string(remedy) + ", or say staged: instead of direct:");
  warn(cause +
       ", so long puts from and to them pass through pinned memory of the "
       "host: " +
       remedy + "; set MESHPOST_NET=staged:ofi if this is intended");
}

Provider choose_provider(std::string const& named, std::string const& bind, Gpus gpus,
                         Quirks const& quirks) {
  bool const loopback = bind.empty();
  std::string const node = loopback ? "127.0.0.1" : bind;
  auto const search = [&](u64 more, std::string const& exactly) {
    return find(named, node.c_str(), loopback, needed | more, exactly);
  };

  Provider chosen;
  chosen.info = search(0, "");
  if (!chosen.info)
    throw Error(Kind::bad_environment, "network engine ofi" + (named.empty() ? "" : ":" + named),
                "libfabric has no such provider with messages and remote writes at " + node,
                "there are: " + providers(node.c_str()) + (named == "shm" ? room_for_shm() : ""));
  auto const add = [&](u64 more, u64 so_far) {
    auto info = search(so_far | more, chosen.name());
    if (!info) return false;
    chosen.info = std::move(info);
    return true;
  };
  u64 extra = 0;
  chosen.multi_receive = !quirks.ring && add(FI_MULTI_RECV, extra);
  if (chosen.multi_receive) extra |= FI_MULTI_RECV;
  if (gpus != Gpus::no) {
    bool const might = quirks.copies || moves_by_itself(chosen.name());
    chosen.reaches_gpus = might && add(FI_HMEM, extra);
    if (chosen.reaches_gpus) extra |= FI_HMEM;
    else if (might || gpus == Gpus::yes) tell_that_none_reaches_gpus(chosen.name(), gpus);
  }

  auto const data_size = chosen.info->domain_attr->cq_data_size;
  if (quirks.announce) chosen.telling = Telling::message;
  else if (data_size >= 8 && !quirks.by_source) chosen.telling = Telling::number_in_data;
  else if (data_size >= 4 && add(FI_SOURCE, extra)) chosen.telling = Telling::source;

  auto const& info = *chosen.info;
  chosen.piece = std::min<u64>(info.ep_attr->max_msg_size, quirks.piece);
  chosen.ordered = !quirks.unordered && both(info, FI_ORDER_WAW) &&
                   info.ep_attr->max_order_waw_size >= chosen.piece;
  chosen.separate_data = chosen.ordered && chosen.name().ends_with(";ofi_rxm");
  chosen.register_sources =
      quirks.register_sources || (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  return chosen;
}

}  // namespace meshpost::net::ofi
