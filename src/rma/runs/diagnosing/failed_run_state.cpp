#include "rma/runs/diagnosing/failed_run_state.hpp"

#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

// The part of a report that other processes need, unless its rank failed.
struct Brief {
  u32 state;
  Note note;
  u64 observed;
  Condition condition;
};

bool has_failed(RankReport const& report) {
  return static_cast<RankState>(report.state) == RankState::failed;
}

}  // namespace

FailedRunState::FailedRunState(WorldState& world, std::vector<LaunchGrid> const& grids,
                               Ending const& ending)
    : layout_(world.layout()),
      reports_(layout_.ranks()),
      counters_(world),
      awaited_(layout_.ranks()),
      process_(world.group().number()),
      processes_(world.group().count()),
      messages_(std::size_t{processes_} * processes_) {
  for (u32 other = 0; world.proxy() && other < processes_; ++other)
    note(process_, other, world.proxy()->traffic(other));
  std::size_t own = 0;
  for (auto const& grid : grids)
    for (u32 r = 0; r < grid.ranks; ++r, ++own) {
      RankReport report = grid.reports[r];
      auto const state = static_cast<RankState>(report.state);
      if (!ending.states.empty() && state != RankState::failed)
        report.state = static_cast<u32>(ending.states[own]);
      if (report.note.operation == Operation::wait_until &&
          report.state == static_cast<u32>(RankState::waiting)) {
        report.observed = 0;
        grid.device->read(&report.observed, report.condition.word,
                          Bytes{width(report.condition.type)});
      }
      reports_[grid.first_rank + r] = report;
      auto const window = world.windows().all().find(report.note.window);
      bool const counts =
          report.note.operation == Operation::wait || report.note.operation == Operation::test;
      if (counts && window != world.windows().all().end())
        awaited_[grid.first_rank + r] =
            counters_.of(window->second.info, grid.first_rank + r, report.note.tag);
    }
}

std::string FailedRunState::pack() const {
  wire::Packer packer;
  u32 const first = layout_.first_device * layout_.ranks_per_device;
  u32 const count = layout_.own_count() * layout_.ranks_per_device;
  packer.value(first).value(count);
  for (u32 r = first; r < first + count; ++r) {
    auto const& report = reports_[r];
    packer.value(static_cast<u8>(has_failed(report)));
    if (has_failed(report)) packer.value(report);
    else packer.value(Brief{report.state, report.note, report.observed, report.condition});
    packer.value(awaited_[r]);
  }
  packer.value(process_);
  for (u32 other = 0; other < processes_; ++other)
    packer.value(Proxy::Traffic{messages(process_, other).sent, messages(other, process_).arrived});
  return packer.take();
}

void FailedRunState::add(std::string_view packed) {
  wire::Unpacker unpacker(packed);
  u32 const first = unpacker.value<u32>(), count = unpacker.value<u32>();
  for (u32 r = first; r < first + count && r < reports_.size(); ++r) {
    auto& report = reports_[r];
    if (unpacker.value<u8>() != 0) {
      report = unpacker.value<RankReport>();
    } else {
      auto const brief = unpacker.value<Brief>();
      report.state = brief.state;
      report.note = brief.note;
      report.observed = brief.observed;
      report.condition = brief.condition;
    }
    awaited_[r] = unpacker.value<CounterSnapshot::Count>();
  }
  u32 const process = unpacker.value<u32>();
  for (u32 other = 0; process < processes_ && other < processes_; ++other)
    note(process, other, unpacker.value<Proxy::Traffic>());
}

void FailedRunState::note(u32 process, u32 other, Proxy::Traffic const& traffic) {
  messages_[process * processes_ + other].sent = traffic.sent;
  messages_[other * processes_ + process].arrived = traffic.received;
}

}  // namespace meshpost::detail
