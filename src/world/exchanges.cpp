#include "world/exchanges.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshpost {
namespace {

constexpr auto a_while = std::chrono::milliseconds(100);

}  // namespace

std::optional<Exchanges::Outcome> Exchanges::bring(Key key, u32 process, std::string operation,
                                                   std::string part, Waiters waiters, u32 step) {
  auto& one = all_.try_emplace(key, One{.timeout = timeout_}).first->second;
  if (one.parts.empty()) {
    one.parts.resize(processes_);
    one.operations.resize(processes_);
    one.timeout.renew();
    one.told = waiters == Waiters::patient;  // the same for all, because operations must be equal
    one.step = step;
    one.begun = Deadline::Clock::now();
  }
  if (static_cast<i32>(step - one.step) < 0) one.step = step;
  if (one.parts[process]) return std::nullopt;  // it has brought this part already: garbage
  one.parts[process] = std::move(part);
  one.operations[process] = std::move(operation);
  if (++one.count < processes_) return std::nullopt;
  Outcome outcome;
  outcome.mismatch = mismatch_in(one);
  for (auto& each : one.parts)
    if (outcome.mismatch.empty()) outcome.parts.push_back(std::move(*each));
  all_.erase(key);
  return outcome;
}

std::string Exchanges::mismatch_in(One const& one) const {
  auto const& first = *one.operations.front();
  for (u32 process = 1; process < processes_; ++process)
    if (*one.operations[process] != first)
      return fmt::format("process {} does '{}' where process 0 does '{}'", process,
                         *one.operations[process], first);
  return {};
}

std::vector<Exchanges::HeldUp> Exchanges::held_up(Deadline::Clock::time_point now) {
  std::vector<HeldUp> found;
  for (auto& [key, one] : all_) {
    if (one.held_up || now - one.begun < a_while) continue;
    one.held_up = true;
    found.push_back({key, one.step, {}});
    for (u32 process = 0; process < processes_; ++process)
      if (!one.parts[process]) found.back().missing.push_back(process);
  }
  return found;
}

std::vector<Exchanges::Waiting> Exchanges::overdue(Deadline::Clock::time_point now) {
  std::vector<Waiting> waiting;
  for (auto& [key, one] : all_) {
    if (one.told || !one.timeout.ends(now)) continue;
    one.told = true;
    waiting.emplace_back();
    for (u32 process = 0; process < processes_; ++process)
      if (!one.operations[process]) waiting.back().missing.push_back(process);
      else waiting.back().operation = *one.operations[process];
  }
  return waiting;
}

}  // namespace meshpost
