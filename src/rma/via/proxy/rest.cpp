// The end of a run: all that its ranks sent has arrived; or it came to nothing, and what is under
// way comes to rest.
#include <fmt/format.h>
#include <sched.h>

#include "base/host_places.hpp"
#include "base/patience.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {

// The thread goes on, alone: what ranks have asked for is on its way, or soon will be. What it
// needs of devices of this process they do, or say that they are broken.
std::optional<Error> Proxy::await_sent(std::string const& operation) {
  Patience patience(channel_ ? peers_.processes().job().silence : std::chrono::milliseconds(0));
  for (driver_.wake(); !is_empty(); sched_yield()) {
    if (failure() || (channel_ && peers_.processes().lost())) break;
    if (patience.ends(moved()))
      return Error(
          Kind::peer_lost, operation,
          fmt::format("what its ranks have sent is stuck in {} for {} ({})",
                      channel_->engine().name(), patience.text(), peer_deadline),
          remedy_of_loss(peer_deadline, "see what became of the network; start the job again"));
  }
  return std::nullopt;
}

void Proxy::settle(std::string const& operation) {
  try {
    settle_all(operation);
  } catch (Error const& error) {
    // What is still under way could reach the next run's windows: there is none.
    driver_.fail(error);
    throw;
  }
  settled_ = true;
}

void Proxy::settle_all(std::string const& operation) {
  auto const unsent = await_sent(operation);
  if (!channel_) {
    if (auto const error = failure()) throw *error;
    return;
  }
  wire::Packer mine;
  for (u32 process = 0; process < peers_.count(); ++process) mine.value(traffic(process).sent);
  auto const all = peers_.exchange(operation, mine.take());
  if (unsent) throw *unsent;
  if (auto const error = failure()) throw *error;  // what was not sent is not counted
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    u64 for_me = 0;
    for (u32 i = 0; i <= peers_.number(); ++i) for_me = unpacker.value<u64>();
    await_parcels(process, for_me, operation);
  }
}

void Proxy::await_parcels(u32 process, u64 sent, std::string const& operation) {
  for (Patience patience(peers_.processes().job().silence);; sched_yield()) {
    u64 const come = traffic(process).received;
    if (come >= sent) return;
    if (auto const error = failure()) throw *error;
    if (auto const loss = peers_.processes().lost())
      throw peers_.processes().lost_error(operation, *loss);
    if (patience.ends(moved()))
      throw Error(
          Kind::peer_lost, operation,
          fmt::format("{} has sent {} parcels, {} have come, and none for {} ({})",
                      peers_.processes().name(process), sent, come, patience.text(), peer_deadline),
          remedy_of_loss(peer_deadline, "see what became of the network; start the job again"));
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

void Proxy::come_to_rest(std::string const& operation, std::chrono::milliseconds patience) {
  abandon();
  if (!channel_) return;  // and no other process takes part
  driver_.start();  // where start() has failed: other processes' writes may be on their way here
  // The thread goes on: what others have begun to write needs it, and what this process has.
  wire::Packer mine;
  {
    auto const alone = driver_.alone();
    mine.value<u8>(failure() ? 1 : 0);
    for (u32 process = 0; process < peers_.count(); ++process)
      mine.value(channel_->writes_begun(process));
  }
  auto const all = peers_.exchange(operation + ", which has come to nothing", mine.take());
  std::vector<u64> writes;  // of each process, to this one
  bool failed = false;      // anybody: then this World has no further run
  for (auto const& one : all) {
    wire::Unpacker unpacker(one);
    failed |= unpacker.value<u8>() != 0;
    for (u32 i = 0; i < peers_.number(); ++i) unpacker.value<u64>();
    writes.push_back(unpacker.value<u64>());
  }
  driver_.wake();
  for (Patience waiting(patience); !failed && !failure() && !at_rest(writes); sched_yield())
    if (waiting.ends(moved()))
      driver_.fail(
          {Kind::peer_lost, operation,
           "not all that the run had begun to write into windows has come, and nothing for " +
               waiting.text(),
           "see what became of the network; start the job again"});
  // Nobody stops before all have come to rest: what one process waits for another may have to send.
  peers_.exchange(operation + " is at rest");
}

bool Proxy::at_rest(std::vector<u64> const& writes_to_land) {
  auto const alone = driver_.alone();
  if (!channel_->reads_nothing()) return false;
  for (u32 process = 0; process < peers_.count(); ++process) {
    if (channel_->lost(process)) continue;
    if (!outbound_.is_empty(process) || channel_->writes_landed(process) < writes_to_land[process])
      return false;
  }
  return true;
}

}  // namespace meshpost::detail
