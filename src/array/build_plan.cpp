// How a plan comes to be. Each process finds out which elements its parts need, and from which
// parts. It asks the processes that own some, and they answer. For that, each process exposes a
// list for each other, and reads the lists that are for it, and no others. All processes are told
// only the number of parts of each, who has a list for whom, and the most of any part.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "array/needs.hpp"
#include "array/part_owners.hpp"
#include "array/plan_state.hpp"
#include "base/hash.hpp"
#include "copy/job/state.hpp"
#include "copy/state.hpp"
#include "meshpost/base/error.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

constexpr char const* operation = make_a_plan;

struct Element {
  u32 owner;
  u64 place, index;
};

// Part `to` asks part `from` for elements, whose places follow. `there`: where they begin among
// those that it receives. Or the answer: where they begin among those that `from` sends.
struct Request {
  u32 to, from;
  u64 count, there;
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
      plan.receives.push_back({one.owner, 0, plan.halo.size(), 0});
    ++plan.receives.back().count;
    plan.halo.push_back(one.index);
  }
  plan.elements = plan.own + plan.halo.size();
  plan.received = {.count = plan.halo.size(), .first = plan.own};
  return plan;
}

// Requests for a part come in the order of the parts that ask.
void add_request(PartPlan& plan, Request const& request, std::span<u64 const> places) {
  plan.sends.push_back({request.to, places.size(), plan.sent.count, request.there});
  plan.sent.list.insert(plan.sent.list.end(), places.begin(), places.end());
  plan.sent.count += places.size();
}

constexpr char const* same_for_all =
    "give all processes the same distribution, and each the needs of its own parts";

Error differ(u32 process, std::string const& what) {
  return {Kind::bad_argument, operation, fmt::format("process {} has {}", process, what),
          same_for_all};
}

using Lists = std::vector<std::string>;  // by process

void append(std::string& list, void const* from, u64 bytes) {
  list.append(static_cast<char const*>(from), bytes);
}

class Builder {
 public:
  Builder(Distribution const& distribution, u64 parts_here, JobMemory* job)
      : state_(std::make_shared<Plan::State>(Plan::State{.distribution = distribution})),
        group_(job ? &job->state().group : &alone_),
        job_(job) {
    if (job) copying::check_caller(operation);
    auto owners = find_owners(*group_, {.parts_here = parts_here,
                                        .parts = distribution.parts(),
                                        .fingerprint = distribution.fingerprint(),
                                        .described = distribution.describe(),
                                        .what = "another distribution",
                                        .remedy = same_for_all,
                                        .of_parts = "needs",
                                        .one = "one list"});
    state_->process = group_->number();
    state_->processes = std::move(owners.processes);
    state_->near = near_in(*group_);
    state_->first = owners.first[state_->process];
    state_->parts.reserve(parts_here);
  }
  u32 first_part() const { return state_->first; }

  // `needed(i)`: indices that the i-th part needs of others, each once.
  template <class Needed>
  std::shared_ptr<Plan::State const> build(u64 parts_here, Needed&& needed) {
    auto const requests = deliver([&] {
      for (u64 i = 0; i < parts_here; ++i)
        state_->parts.push_back(
            receive_only(state_->distribution, first_part() + static_cast<u32>(i), needed(i)));
      return ask();
    });
    auto const answers = deliver([&] {
      for (u32 process = 0; process < requests.size(); ++process)
        take_requests(process, requests[process]);
      return answer();
    });
    note_most(group_->gather(operation, [&] {
      for (auto const& list : answers) take_answers(list);
      return most_here();
    }));
    return state_;
  }

 private:
  // Makes a list for each process. Returns those that the processes have for this one.
  template <class Make>
  Lists deliver(Make&& make) {
    std::string all;
    auto const tables = group_->gather(operation, [&] {
      Lists const lists = make();
      wire::Packer table;
      for (u32 process = 0; process < lists.size(); ++process) {
        if (lists[process].empty()) continue;
        table.value(process).value(u64{all.size()}).value(u64{lists[process].size()});
        all += lists[process];
      }
      return table.take();
    });
    std::optional<Exposed> exposed;
    if (job_) exposed = job_->expose(all.data(), Bytes{all.size()}, "lists of a plan");
    Lists come(group_->count());
    group_->together(operation, [&] {
      for (u32 process = 0; process < come.size(); ++process)
        for (wire::Unpacker table(tables[process]); !table.at_end();) {
          auto const whose = table.value<u32>();
          auto const begin = table.value<u64>(), bytes = table.value<u64>();
          if (whose != group_->number()) continue;
          come[process].resize(bytes);
          if (process == whose) come[process] = all.substr(begin, bytes);
          else copy(come[process].data(), exposed->at(process, begin, Bytes{bytes}));
        }
    });
    return come;
  }

  Lists ask() const {
    Lists lists(group_->count());
    for (auto const& part : state_->parts)
      for (auto const& entry : part.receives) {
        auto& list = lists[state_->processes[entry.part]];
        Request const request{part.part, entry.part, entry.count, entry.offset};
        append(list, &request, sizeof request);
        for (u64 i = 0; i < entry.count; ++i) {
          u64 const place = state_->distribution.place_of(part.halo[entry.offset + i]);
          append(list, &place, sizeof place);
        }
      }
    return lists;
  }
  void take_requests(u32 process, std::string_view list) {
    while (!list.empty()) {
      auto const request = take<Request>(list);
      std::vector<u64> places(request.count);
      for (auto& place : places) place = take<u64>(list);
      auto& part = state_->parts.at(request.from - first_part());
      // Distributions of the same fingerprint may still differ.
      if (auto const most = std::ranges::max(places); most >= part.own)
        throw differ(process,
                     fmt::format("another distribution: it needs the element at place {} of "
                                 "part {}, which has {} here",
                                 most, request.from, part.own));
      add_request(part, request, places);
    }
  }
  Lists answer() const {
    Lists lists(group_->count());
    for (auto const& part : state_->parts)
      for (auto const& entry : part.sends) {
        Request const request{entry.part, part.part, entry.count, entry.offset};
        append(lists[state_->processes[entry.part]], &request, sizeof request);
      }
    return lists;
  }
  void take_answers(std::string_view list) {
    while (!list.empty()) {
      auto const answer = take<Request>(list);
      auto& receives = state_->parts.at(answer.to - first_part()).receives;
      std::ranges::lower_bound(receives, answer.from, {}, &PlanEntry::part)->there = answer.there;
    }
  }
  template <class T>
  static T take(std::string_view& list) {
    T value;
    list.copy(reinterpret_cast<char*>(&value), sizeof value);
    list.remove_prefix(sizeof value);
    return value;
  }

  std::string most_here() const {
    Plan::Most most;
    std::string all;  // of which the fingerprint is
    for (auto const& part : state_->parts) {
      most.sent = std::max(most.sent, part.sent.count);
      most.received = std::max(most.received, part.received.count);
      most.size = std::max(most.size, part.size());
      most.entries = std::max({most.entries, u64{part.sends.size()}, u64{part.receives.size()}});
      append(all, part.halo.data(), part.halo.size() * sizeof part.halo[0]);
    }
    return wire::Packer().value(most).value(hash_of(all)).take();
  }
  void note_most(Lists const& all) {
    std::string hashes;
    for (auto const& one : all) {
      wire::Unpacker unpacker(one);
      auto const most = unpacker.value<Plan::Most>();
      auto const hash = unpacker.value<u64>();
      append(hashes, &hash, sizeof hash);
      state_->most.sent = std::max(state_->most.sent, most.sent);
      state_->most.received = std::max(state_->most.received, most.received);
      state_->most.size = std::max(state_->most.size, most.size);
      state_->most.entries = std::max(state_->most.entries, most.entries);
    }
    state_->fingerprint = hash_of(hashes) ^ state_->distribution.fingerprint();
  }

  std::shared_ptr<Plan::State> state_;
  ProcessGroup const alone_{};
  ProcessGroup const* group_;
  JobMemory* job_;
};

}  // namespace

Plan Plan::from_indices(Distribution const& distribution, std::span<std::vector<u64> const> needs,
                        JobMemory* job) {
  Builder builder(distribution, needs.size(), job);
  return Plan(builder.build(needs.size(), [&](u64 i) {
    return others_among(distribution, builder.first_part() + static_cast<u32>(i), needs[i]);
  }));
}

Plan Plan::from_pattern(Distribution const& distribution, std::span<Pattern const> patterns,
                        JobMemory* job) {
  Builder builder(distribution, patterns.size(), job);
  return Plan(builder.build(patterns.size(), [&](u64 i) {
    return others_in(distribution, builder.first_part() + static_cast<u32>(i), patterns[i]);
  }));
}

}  // namespace meshpost
