// The end of a run: everything that its ranks sent has arrived. Or the run failed, and operations
// in flight quiesces.
#include <fmt/format.h>
#include <sched.h>

#include "base/deadline.hpp"
#include "base/host_hooks.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {

// The thread continues, alone: the requests of ranks are in flight, or soon will be. Devices of
// this process do their part, or report that they are broken.
std::optional<Error> Proxy::await_sent(std::string const& operation) {
  Deadline timeout(channel_ ? group_.processes().job().silence : std::chrono::milliseconds(0));
  for (driver_.wake(); !is_empty(); sched_yield()) {
    if (failure() || (channel_ && group_.processes().lost())) break;
    if (timeout.ends(moved()))
      return Error(Kind::peer_lost, operation,
                   fmt::format("{} has sent none of its ranks' remaining messages for {}",
                               channel_->engine().name(), timeout.text()),
                   "check the network; start the job again");
  }
  return std::nullopt;
}

void Proxy::drain(std::string const& operation) {
  try {
    drain_all(operation);
  } catch (Error const& error) {
    // Transfers in flight could reach the next run's windows; so no run follows.
    driver_.fail(error);
    throw;
  }
  drained_ = true;
}

void Proxy::drain_all(std::string const& operation) {
  auto const unsent = await_sent(operation);
  if (!channel_) {
    if (auto const error = failure()) throw *error;
    return;
  }
  wire::Packer mine;
  for (u32 process = 0; process < group_.count(); ++process) mine.value(traffic(process).sent);
  auto const all = group_.exchange(operation, mine.take());
  if (unsent) throw *unsent;
  if (auto const error = failure()) throw *error;  // messages that were not sent are not counted
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    u64 for_me = 0;
    for (u32 i = 0; i <= group_.number(); ++i) for_me = unpacker.value<u64>();
    await_messages(process, for_me, operation);
  }
}

void Proxy::await_messages(u32 process, u64 sent, std::string const& operation) {
  for (Deadline timeout(group_.processes().job().silence);; sched_yield()) {
    u64 const come = traffic(process).received;
    if (come >= sent) return;
    if (auto const error = failure()) throw *error;
    if (auto const loss = group_.processes().lost())
      throw group_.processes().lost_error(operation, *loss);
    if (timeout.ends(moved()))
      throw Error(Kind::peer_lost, operation,
                  fmt::format("{} has sent {} messages, {} have arrived, and no further one for {}",
                              group_.processes().name(process), sent, come, timeout.text()),
                  "check the network; start the job again");
  }
}

void Proxy::abandon() {
  hooks::at("abandon a run");
  auto const alone = driver_.alone();
  if (outbound_.is_over()) return;
  inbound_.forget_all();
  outbound_.abandon();
  own_.drop();
}

void Proxy::quiesce(std::string const& operation, std::chrono::milliseconds timeout) {
  abandon();
  if (!channel_) return;  // and no other process takes part
  driver_.start();        // if start() has failed: other processes' writes may be on their way here
  // The thread continues: writes that others have begun need it, and so do those of this process.
  wire::Packer mine;
  {
    auto const alone = driver_.alone();
    mine.value<u8>(failure() ? 1 : 0);
    for (u32 process = 0; process < group_.count(); ++process)
      mine.value(channel_->writes_begun(process));
  }
  auto const all = group_.exchange(operation + ", which failed", mine.take());
  std::vector<u64> writes;  // of each process, to this one
  bool failed = false;      // of any process: then this World has no further run
  for (auto const& one : all) {
    wire::Unpacker unpacker(one);
    failed |= unpacker.value<u8>() != 0;
    for (u32 i = 0; i < group_.number(); ++i) unpacker.value<u64>();
    writes.push_back(unpacker.value<u64>());
  }
  driver_.wake();
  for (Deadline waiting(timeout); !failed && !failure() && !is_quiescent(writes); sched_yield())
    if (waiting.ends(moved()))
      driver_.fail(
          {Kind::peer_lost, operation,
           "writes into windows that the run had begun have not arrived, and nothing has for " +
               waiting.text(),
           "check the network; start the job again"});
  // Nobody stops before all are quiescent: one process may wait for what another has to send.
  group_.exchange(operation + " is quiescent");
}

bool Proxy::is_quiescent(std::vector<u64> const& writes_to_land) {
  auto const alone = driver_.alone();
  if (!channel_->reads_nothing()) return false;
  for (u32 process = 0; process < group_.count(); ++process) {
    if (channel_->lost(process)) continue;
    if (!outbound_.is_empty(process) || channel_->writes_landed(process) < writes_to_land[process])
      return false;
  }
  return true;
}

}  // namespace meshpost::detail
