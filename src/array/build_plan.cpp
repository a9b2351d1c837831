// How a plan comes to be. Each process finds out which elements its parts need, and from which
// parts. It writes a list for each process that owns some, and exposes all these lists. Each
// process then reads the lists that are for it, and no others. All processes are told only the
// number of parts of each, and who has a list for whom.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "array/plan_state.hpp"
#include "copy/job/state.hpp"
#include "copy/state.hpp"
#include "meshpost/base/error.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

constexpr char const* operation = "make a plan";

struct Element {
  u32 owner;
  u64 place, index;
};

// Each index once. Sorted now and then, so that repeated ones take no memory.
class Collected {
 public:
  void add(u64 index) {
    indices_.push_back(index);
    if (indices_.size() >= limit_) shrink();
  }
  std::vector<u64> take() {
    shrink();
    return std::move(indices_);
  }

 private:
  void shrink() {
    std::ranges::sort(indices_);
    auto const repeated = std::ranges::unique(indices_);
    indices_.erase(repeated.begin(), repeated.end());
    limit_ = std::max<u64>(u64{1} << 20, 2 * indices_.size());
  }
  std::vector<u64> indices_;
  u64 limit_ = u64{1} << 20;
};

// True for elements of a part; quick where they are consecutive.
class Own {
 public:
  Own(Distribution const& distribution, u32 part)
      : distribution_(distribution), part_(part), begin_(distribution.begin_of(part)) {
    size_ = distribution.size_of(part);
  }
  bool has(u64 index) const {
    return begin_ ? index - *begin_ < size_ : distribution_.owner_of(index) == part_;
  }

 private:
  Distribution const& distribution_;
  u32 part_;
  std::optional<u64> begin_;
  u64 size_;
};

// A list for another process: part `from` shall send elements at these places to part `to`.
struct Request {
  u32 to, from;
  u64 count;
};

PartPlan receive_only(Distribution const& distribution, u32 part, std::vector<u64> const& needed) {
  std::vector<Element> elements;
  elements.reserve(needed.size());
  for (u64 const index : needed)
    elements.push_back({distribution.owner_of(index), distribution.place_of(index), index});
  std::ranges::sort(elements, std::less(),
                    [](Element const& one) { return std::pair(one.owner, one.place); });
  PartPlan plan{.part = part, .own = distribution.size_of(part)};
  for (auto const& one : elements) {
    if (plan.receives.empty() || plan.receives.back().part != one.owner)
      plan.receives.push_back({one.owner, 0, plan.halo.size()});
    ++plan.receives.back().count;
    plan.halo.push_back(one.index);
  }
  plan.received = {.count = plan.halo.size(), .first = plan.own};
  return plan;
}

// Requests for a part come in the order of the parts that ask.
void add_request(PartPlan& plan, u32 to, std::span<u64 const> places) {
  plan.sends.push_back({to, places.size(), plan.sent.count});
  plan.sent.list.insert(plan.sent.list.end(), places.begin(), places.end());
  plan.sent.count += places.size();
}

Error differ(u32 process, std::string const& what) {
  return {Kind::bad_argument, operation, fmt::format("process {} has {}", process, what),
          "give all processes the same distribution, and each the needs of its own parts"};
}

// The process of each part, and the first part of each process.
struct Owners {
  std::vector<u32> processes;
  std::vector<u32> first;
};

Owners find_owners(ProcessGroup const& group, Distribution const& distribution, u64 parts_here) {
  auto const all = group.gather(operation, [&] {
    return wire::Packer()
        .value(parts_here)
        .value(distribution.fingerprint())
        .text(distribution.describe())
        .take();
  });
  Owners owners;
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    auto const parts = unpacker.value<u64>();
    bool const same = unpacker.value<u64>() == distribution.fingerprint();
    if (!same)
      throw differ(process, fmt::format("another distribution ({}) than this one ({})",
                                        unpacker.text(), distribution.describe()));
    owners.first.push_back(static_cast<u32>(owners.processes.size()));
    if (parts > distribution.parts() - owners.processes.size())
      throw differ(process,
                   fmt::format("the needs of {} parts, after {} of the {} parts were given", parts,
                               owners.processes.size(), distribution.parts()));
    owners.processes.insert(owners.processes.end(), parts, process);
  }
  if (owners.processes.size() != distribution.parts())
    throw Error(Kind::bad_argument, operation,
                fmt::format("the needs of {} parts were given, and the array has {}",
                            owners.processes.size(), distribution.parts()),
                "give one list for each part, which may be empty");
  return owners;
}

class Builder {
 public:
  Builder(Distribution const& distribution, u64 parts_here, JobMemory* job)
      : state_(std::make_shared<Plan::State>(Plan::State{.distribution = distribution})),
        group_(job ? &job->state().group : &alone_),
        job_(job) {
    if (job) copying::check_caller(operation);
    auto owners = find_owners(*group_, distribution, parts_here);
    state_->process = group_->number();
    state_->processes = std::move(owners.processes);
    state_->first = owners.first[state_->process];
    state_->parts.reserve(parts_here);
  }
  u32 first_part() const { return state_->first; }

  // `needed(i)`: indices that the i-th part needs of others, each once.
  template <class Needed>
  std::shared_ptr<Plan::State const> build(u64 parts_here, Needed&& needed) {
    auto const tables = group_->gather(operation, [&] {
      for (u64 i = 0; i < parts_here; ++i)
        state_->parts.push_back(
            receive_only(state_->distribution, first_part() + static_cast<u32>(i), needed(i)));
      return write_lists();
    });
    std::optional<Exposed> exposed;
    if (job_) exposed = job_->expose(lists_.data(), Bytes{lists_.size()}, "lists of a plan");
    group_->together(operation, [&] {
      for (u32 process = 0; process < group_->count(); ++process)
        read_lists(process, tables[process], exposed);
      if (exposed)
        for (u32 process = 0; process < group_->count(); ++process)
          state_->ways.push_back(exposed->part(process));
    });
    return state_;
  }

 private:
  // Returns the table of lists: for each process that has one, where it begins and ends.
  std::string write_lists() {
    wire::Packer table;
    for (u32 process = 0; process < group_->count(); ++process) {
      u64 const begin = lists_.size();
      for (auto const& part : state_->parts)
        for (auto const& entry : part.receives)
          if (state_->processes[entry.part] == process) write_list(part, entry);
      if (lists_.size() != begin) table.value(process).value(begin).value(u64{lists_.size()});
    }
    return table.take();
  }
  void write_list(PartPlan const& part, PlanEntry const& entry) {
    Request const request{.to = part.part, .from = entry.part, .count = entry.count};
    lists_.append(reinterpret_cast<char const*>(&request), sizeof request);
    for (u64 i = 0; i < entry.count; ++i) {
      u64 const place = state_->distribution.place_of(part.halo[entry.offset + i]);
      lists_.append(reinterpret_cast<char const*>(&place), sizeof place);
    }
  }

  void read_lists(u32 process, std::string_view table, std::optional<Exposed> const& exposed) {
    for (wire::Unpacker entries(table); !entries.at_end();) {
      auto const whose = entries.value<u32>();
      auto const begin = entries.value<u64>(), end = entries.value<u64>();
      if (whose != group_->number()) continue;
      std::string lists(end - begin, '\0');
      if (process == group_->number()) lists = lists_.substr(begin, end - begin);
      else copy(lists.data(), exposed->at(process, begin, Bytes{end - begin}));
      take_lists(process, lists);
    }
  }
  void take_lists(u32 process, std::string_view lists) {
    for (u64 at = 0; at < lists.size();) {
      Request request;
      std::memcpy(&request, lists.data() + at, sizeof request);
      at += sizeof request;
      std::vector<u64> places(request.count);
      std::memcpy(places.data(), lists.data() + at, request.count * sizeof(u64));
      at += request.count * sizeof(u64);
      auto& part = state_->parts.at(request.from - first_part());
      // Distributions of the same fingerprint may still differ.
      if (auto const most = std::ranges::max(places); most >= part.own)
        throw differ(process,
                     fmt::format("another distribution: it needs the element at place {} of "
                                 "part {}, which has {} here",
                                 most, request.from, part.own));
      add_request(part, request.to, places);
    }
  }

  std::shared_ptr<Plan::State> state_;
  ProcessGroup const alone_{};
  ProcessGroup const* group_;
  JobMemory* job_;
  std::string lists_;
};

u64 checked(Distribution const& distribution, u32 part, u64 index) {
  if (index < distribution.size()) return index;
  throw Error(Kind::bad_argument, operation,
              fmt::format("part {} needs element {}, and the array has {}", part, index,
                          distribution.size()),
              "number elements from 0");
}

std::vector<u64> columns_of_others(Distribution const& distribution, u32 part,
                                   Plan::Pattern const& pattern) {
  auto const& [offsets, columns] = pattern;
  Own const own(distribution, part);
  Collected needed;
  for (u64 row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row] > offsets[row + 1] || offsets[row + 1] > columns.size())
      throw Error(Kind::bad_argument, operation,
                  fmt::format("row {} of part {} has the columns from {} to {} of {}", row, part,
                              offsets[row], offsets[row + 1], columns.size()),
                  "give offsets that ascend, one more than there are rows");
    for (u64 at = offsets[row]; at < offsets[row + 1]; ++at)
      if (u64 const column = checked(distribution, part, columns[at]); !own.has(column))
        needed.add(column);
  }
  return needed.take();
}

}  // namespace

Plan Plan::from_indices(Distribution const& distribution, std::span<std::vector<u64> const> needs,
                        JobMemory* job) {
  Builder builder(distribution, needs.size(), job);
  return Plan(builder.build(needs.size(), [&](u64 i) {
    u32 const part = builder.first_part() + static_cast<u32>(i);
    Own const own(distribution, part);
    Collected needed;
    for (u64 const index : needs[i])
      if (!own.has(checked(distribution, part, index))) needed.add(index);
    return needed.take();
  }));
}

Plan Plan::from_pattern(Distribution const& distribution, std::span<Pattern const> patterns,
                        JobMemory* job) {
  Builder builder(distribution, patterns.size(), job);
  return Plan(builder.build(patterns.size(), [&](u64 i) {
    return columns_of_others(distribution, builder.first_part() + static_cast<u32>(i), patterns[i]);
  }));
}

}  // namespace meshpost
