#include "rma/diagnosis.hpp"

#include <fmt/format.h>

#include "rma/failure.hpp"

namespace meshpost::detail {
namespace {

class Diagnosis {
 public:
  explicit Diagnosis(EndedRun const& run) : run_(run), layout_(run.world.layout()) {}

  Error reason(Ending const& ending) const {
    auto const all = views(ending);
    auto const waits = who_waits(all);
    auto const behind = waits.empty() ? "" : "\n  " + waits;
    for (auto const& view : all) {
      if (view.state != RankState::failed) continue;
      RankReport const& report =
          run_.grids[layout_.device_of(view.rank)].reports[view.rank % layout_.ranks_per_device];
      Names const names{run_.record.image.name, [this](u32 rank) { return rank_name(rank); }};
      auto const error = to_error(report, view.rank, names);
      return Error(error.kind(), error.operation(), error.cause() + behind, error.remedy());
    }
    if (ending.reason == Ending::Reason::deadlock)
      return Error(
          Kind::deadlock, fmt::format("run {}", run_.record.image.name),
          fmt::format("every rank that has not ended waits, and nobody is left to notify it{}",
                      behind),
          "send what is awaited before waiting, or wait for less");
    return Error(
        Kind::deadline, fmt::format("run {}", run_.record.image.name),
        fmt::format("no rank got on for {:.3g} s while others waited{}",
                    static_cast<double>(run_.deadline.count()) * 1e-3, behind),
        "if the kernel computes that long, raise MESHPOST_DEADLINE (seconds) or Launch::deadline");
  }

 private:
  std::vector<RankView> views(Ending const& ending) const {
    std::vector<RankView> all;
    for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
      u32 const device = layout_.device_of(rank);
      RankReport const& report = run_.grids[device].reports[rank % layout_.ranks_per_device];
      RankView view{rank,
                    static_cast<RankState>(report.state),
                    report.note,
                    report.observed,
                    report.condition,
                    {},
                    false};
      if (!ending.states.empty() && view.state != RankState::failed)
        view.state = ending.states[rank];
      if (view.state == RankState::waiting || view.state == RankState::asking)
        explain(view, device);
      all.push_back(std::move(view));
    }
    for (auto& view : all)
      if (view.state == RankState::waiting && view.note.operation != Operation::wait &&
          view.note.operation != Operation::wait_until)
        view.could_wake = not_at_barrier(view, all);
    return all;
  }
  void explain(RankView& view, u32 device) const {
    if (view.note.operation == Operation::wait || view.note.operation == Operation::test) {
      auto const window = run_.world.windows().find(view.note.window);
      if (window == run_.world.windows().end()) return;
      auto const [count, sender] = run_.counters.of(window->second.info, view.rank, view.note.tag);
      view.observed = count;
      if (view.note.expected != Note::no_rank) view.could_wake = {view.note.expected};
      else if (sender != 0) view.could_wake = {sender - 1}, view.sent_before = true;
    } else if (view.note.operation == Operation::wait_until) {
      view.observed = 0;
      layout_.devices[device]->read(&view.observed, view.condition.word,
                                    Bytes{width(view.condition.type)});
    }
  }
  std::vector<u32> not_at_barrier(RankView const& view, std::vector<RankView> const& all) const {
    std::vector<u32> missing;
    for (auto const& other : all) {
      bool const there =
          other.state == RankState::waiting && other.note.operation == view.note.operation &&
          other.note.window == view.note.window && other.note.count == view.note.count;
      if (!there && other.rank != view.rank &&
          run_.world.same_group(view.rank, other.rank, view.note.window))
        missing.push_back(other.rank);
    }
    return missing;
  }

  std::string rank_name(u32 rank) const {
    return fmt::format("rank {} ({})", rank, layout_.devices[layout_.device_of(rank)]->name());
  }
  std::string who_waits(std::vector<RankView> const& all) const {
    auto const name = [this](u32 number) { return run_.world.window_name(number); };
    return wait_report(all, name,
                       [this](u32 number) { return run_.world.communicator_name(number); });
  }

  EndedRun const& run_;
  Layout const& layout_;
};

}  // namespace

Error diagnose(EndedRun const& run, Ending const& ending) { return Diagnosis(run).reason(ending); }

}  // namespace meshpost::detail
