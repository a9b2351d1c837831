#include "rma/runs/diagnosing/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/trace/timeline.hpp"
#include "rma/runs/diagnosing/failure.hpp"

namespace meshpost::detail {
namespace {

class Diagnosis {
 public:
  explicit Diagnosis(EndedRun const& run) : run_(run), layout_(run.world.layout()) {}

  Error error(Reason reason) const {
    auto const operation = fmt::format("run {}", run_.record.name());
    auto const all = views();
    auto const waits = who_waits(all);
    auto const behind = (waits.empty() ? "" : "\n  " + waits) + waiting_streams();
    for (auto const& view : all) {
      if (view.state != RankState::failed) continue;
      Names const names{run_.record.name(), [this](u32 rank) { return rank_name(rank); },
                        [this](u32 number) { return window_name(number); }};
      auto const error = to_error(run_.failed_state.reports()[view.rank], view.rank, names);
      return Error(error.kind(), error.operation(), error.cause() + behind, error.remedy());
    }
    if (reason == Reason::lost) {
      auto const& processes = run_.world.group().processes();
      auto const lost = processes.lost_error(operation, *processes.gone());
      return Error(lost.kind(), lost.operation(), lost.cause() + behind, lost.remedy());
    }
    if (auto const error = too_many(all)) return *error;
    bool const all_ended = std::ranges::all_of(
        all, [](RankView const& view) { return view.state == RankState::ended; });
    if (all_ended && run_.world.group().alone())
      return Error(
          reason == Reason::deadlock ? Kind::deadlock : Kind::deadline, operation,
          "all ranks have ended, but they did not meet at the run's begin or end: a word that "
          "counts them "
          "there was overwritten, or a device no longer reaches another",
          "look for a kernel that writes where it should not: with compute-sanitizer on GPUs, with "
          "AddressSanitizer on CPU devices; if there is none, this is an error in meshpost");
    if (run_.world.group().alone() && !all_ended && std::ranges::none_of(all, is_waiting))
      return Error(reason == Reason::deadlock ? Kind::deadlock : Kind::deadline, operation,
                   fmt::format("threads of a rank wait for each other{}", behind),
                   "see that all threads of a rank call each operation (also sync() and any())");
    if (reason == Reason::deadlock) {
      bool const of_others = std::ranges::any_of(all, [](RankView const& view) {
        return view.state == RankState::waiting && (view.note.operation == Operation::wait ||
                                                    view.note.operation == Operation::wait_until);
      });
      return Error(
          Kind::deadlock, operation,
          fmt::format("every rank that has not ended waits, and nobody is left to notify it{}",
                      behind),
          fmt::format(
              "send what is awaited before waiting, or wait for less{}",
              of_others ? "; if a host or a stream ends a wait, set Launch::with_host" : ""));
    }
    if (all_ended)
      return Error(Kind::deadline, operation,
                   fmt::format("all ranks have ended, but for {:.3g} s not all have heard so{}",
                               static_cast<double>(run_.deadline.count()) * 1e-3, on_the_way()),
                   "check the network; start the job again");
    return Error(
        Kind::deadline, operation,
        fmt::format("no rank got on for {:.3g} s while others waited{}{}",
                    static_cast<double>(run_.deadline.count()) * 1e-3, behind, on_the_way()),
        "if the kernel computes that long, raise MESHPOST_DEADLINE (seconds) or Launch::deadline");
  }

 private:
  static bool is_waiting(RankView const& view) {
    return view.state == RankState::waiting || view.state == RankState::asking;
  }
  // Finds a wait whose counter has counted up so far that it seems to have gone down.
  std::optional<Error> too_many(std::vector<RankView> const& all) const {
    for (auto const& view : all) {
      bool const counts =
          view.note.operation == Operation::wait || view.note.operation == Operation::test;
      if (!is_waiting(view) || !counts || view.observed < u64{1} << 31) continue;
      return Error(
          Kind::kernel_failed,
          fmt::format("{} in {} on {}", to_string(view.note.operation), run_.record.name(),
                      rank_name(view.rank)),
          fmt::format("{} notifications of tag {} in {} have come that it has not consumed; "
                      "a counter holds 2147483647",
                      view.observed, view.note.tag, run_.world.windows().name(view.note.window)),
          "consume them as they come, or use more tags");
    }
    return std::nullopt;
  }
  std::vector<RankView> views() const {
    std::vector<RankView> all;
    for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
      RankReport const& report = run_.failed_state.reports()[rank];
      RankView view{rank,
                    static_cast<RankState>(report.state),
                    report.note,
                    report.observed,
                    report.condition,
                    {},
                    false};
      if (is_waiting(view)) explain(view);
      all.push_back(std::move(view));
    }
    for (auto& view : all)
      if (view.state == RankState::waiting && view.note.operation >= Operation::barrier)
        view.could_wake = not_at_barrier(view, all);
    return all;
  }
  void explain(RankView& view) const {
    if (view.note.operation == Operation::wait_until && view.note.expected != Note::no_rank)
      view.could_wake = {view.note.expected};
    if (view.note.operation != Operation::wait && view.note.operation != Operation::test) return;
    if (!run_.world.windows().all().contains(view.note.window)) return;
    auto const [count, sender] = run_.failed_state.awaited(view.rank);
    view.observed = count;
    if (view.note.expected != Note::no_rank) view.could_wake = {view.note.expected};
    else if (sender != 0 && WindowInfo::raiser(sender) < run_.world.layout().ranks())
      view.could_wake = {WindowInfo::raiser(sender)}, view.sent_before = true;
  }
  std::vector<u32> not_at_barrier(RankView const& view, std::vector<RankView> const& all) const {
    std::vector<u32> missing;
    for (auto const& other : all) {
      bool const there =
          other.state == RankState::waiting && other.note.operation == view.note.operation &&
          other.note.window == view.note.window && other.note.count == view.note.count;
      bool const known = other.state != RankState::absent || is_gone(process_of(other.rank));
      if (!there && known && other.rank != view.rank &&
          run_.world.communicators().same_group(view.rank, other.rank, view.note.window))
        missing.push_back(other.rank);
    }
    return missing;
  }

  // Users have no window of the world's tags. Other interfaces, such as dCUDA's, lay windows of
  // their own over its counters.
  std::string window_name(u32 number) const {
    return number == run_.world.tags().number ? "" : run_.world.windows().name(number);
  }
  std::string rank_name(u32 rank) const {
    return fmt::format("rank {} ({})", rank, layout_.names[layout_.device_of(rank)]);
  }
  std::string who_waits(std::vector<RankView> const& all) const {
    auto const& world = run_.world;
    return wait_report(all, {[&](u32 number) { return world.windows().name(number); },
                             [&](u32 number) { return world.communicators().name(number); },
                             [&](u32 rank) { return place_of(process_of(rank)); }});
  }

  // Of this process.
  std::string waiting_streams() const {
    std::string text;
    auto const client = run_.world.client(nullptr);
    if (!client) return text;
    for (auto const& line : client->waiting()) text += "\n  " + line;
    return text;
  }

  // After a loss the processes exchange nothing more. So only this is known of others' ranks.
  std::string place_of(u32 process) const {
    return fmt::format("in process {}{}", process, is_gone(process) ? ", which is gone" : "");
  }
  bool is_gone(u32 process) const {
    auto const gone = run_.world.group().processes().gone();
    return gone && gone->process == process;
  }
  u32 process_of(u32 rank) const { return layout_.processes[layout_.device_of(rank)]; }

  // Nothing has arrived for so long that missing messages will not arrive.
  std::string on_the_way() const {
    std::string text;
    auto const& group = run_.world.group();
    for (u32 from = 0; from < group.count(); ++from)
      for (u32 to = 0; to < group.count(); ++to)
        if (auto const [sent, arrived] = run_.failed_state.messages(from, to); sent != arrived)
          text +=
              fmt::format("\n  {} sent {} messages to {}, {} arrived: the network lost the others",
                          group.processes().name(from), sent, group.processes().name(to), arrived);
    return text;
  }

  EndedRun const& run_;
  Layout const& layout_;
};

}  // namespace

Error diagnose(EndedRun const& run, Reason reason) { return Diagnosis(run).error(reason); }

}  // namespace meshpost::detail
