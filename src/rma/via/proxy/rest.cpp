// What becomes of what is under way when a run has come to nothing.
#include <sched.h>

#include <algorithm>

#include "base/host_places.hpp"
#include "base/patience.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {

void Proxy::abandon() {
  hooks::at("abandon a run");
  auto const alone = this->alone();
  if (std::exchange(over_, true)) return;
  gets_.clear();
  for (auto& peer : peers_of_net_) {
    // A write that has begun keeps its parcel: their sequences are those of what comes behind.
    bool const told = peer.queue.empty() || peer.queue.front()->written == 0;
    if (told) {
      peer.queue.clear();
      continue;
    }
    auto& first = *peer.queue.front();
    first.size = first.sent + first.written;
    peer.queue.resize(1);
  }
  for (auto const& own : own_) own.access->drop();
}

void Proxy::come_to_rest(std::string const& operation, std::chrono::milliseconds patience) {
  abandon();
  if (!channel_) return;  // and no other process takes part
  wake_up();  // where start() has failed: other processes' writes may be on their way here
  // The thread goes on: what others have begun to write needs it, and what this process has.
  wire::Packer mine;
  {
    auto const alone = this->alone();
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
  wake();
  for (Patience waiting(patience); !failed && !failure() && !at_rest(writes); sched_yield())
    if (waiting.ends(moved()))
      fail({Kind::peer_lost, operation,
            "not all that the run had begun to write into windows has come, and nothing for " +
                waiting.text(),
            "see what became of the network; start the job again"});
  // Nobody stops before all have come to rest: what one process waits for another may have to send.
  peers_.exchange(operation + " is at rest");
}

bool Proxy::at_rest(std::vector<u64> const& writes_to_land) {
  auto const alone = this->alone();
  if (!channel_->reads_nothing()) return false;
  for (u32 process = 0; process < peers_of_net_.size(); ++process) {
    if (lost(process)) continue;
    if (!peers_of_net_[process].queue.empty() ||
        channel_->writes_landed(process) < writes_to_land[process])
      return false;
  }
  return true;
}

}  // namespace meshpost::detail
