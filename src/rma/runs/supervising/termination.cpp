#include "rma/runs/supervising/termination.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "meshpost/base/events.hpp"

namespace meshpost::detail {
namespace {

constexpr auto between_rounds = std::chrono::milliseconds(20);
constexpr auto longest_round = std::chrono::milliseconds(100);  // that counts for the deadline

}  // namespace

TerminationDetector::Doing& TerminationDetector::Doing::operator+=(Doing const& other) {
  waiting += other.waiting;
  computing += other.computing;
  ending += other.ending;
  return *this;
}

TerminationDetector::TerminationDetector(ProcessGroup const& group, u32 run,
                                         std::chrono::milliseconds deadline)
    : group_(group),
      run_(run),
      next_round_(Clock::now() + between_rounds),
      deadline_(deadline, longest_round),
      answers_(group.count()),
      before_(group.count()) {}

TerminationDetector::TerminationDetector(ProcessGroup const& group, u32 run,
                                         std::chrono::milliseconds deadline, std::string operation,
                                         std::vector<Processes::Message>& early)
    : group_(group),
      run_(run),
      early_(&early),
      operation_(std::move(operation)),
      missing_(group.processes().job().silence),
      next_round_(Clock::now() + between_rounds),
      deadline_(deadline, longest_round),
      answers_(group.count()),
      before_(group.count()) {}

void TerminationDetector::send(u32 to, Message message) {
  message.run = run_;
  group_.processes().post(group_.channel(), to,
                          {reinterpret_cast<char const*>(&message), sizeof message});
}

void TerminationDetector::poison(Reason reason) {
  verdict_.poison = std::max(verdict_.poison, reason);
  send(Processes::everyone, {.type = Type::poison, .reason = reason});
}

void TerminationDetector::wait(std::chrono::microseconds timeout) {
  group_.processes().wait_for_messages(group_.channel(), timeout);
}

TerminationDetector::Verdict TerminationDetector::poll(Own const& own) {
  answer(own);
  if (own.ended && !told_ended_) {
    told_ended_ = true;
    if (is_root()) ++ended_;
    else send(0, {.type = Type::ended});
  }
  if (ranks_meet() && own.left && !verdict_.nowhere) {
    verdict_.nowhere = true;
    send(Processes::everyone, {.type = Type::left});
  }
  take_messages();
  look_for_others(own.ended);
  if (!is_root() || verdict_.over) return verdict_;
  if (ended_ == group_.count()) {
    verdict_.over = true;
    send(Processes::everyone, {.type = Type::over, .reason = verdict_.poison});
  } else if (verdict_.poison == Reason::finished) {
    ask();
  }
  return verdict_;
}

// Messages of a run that is over have no meaning any more.
void TerminationDetector::take_messages() {
  std::vector<Processes::Message> messages;
  if (early_) messages.swap(*early_);
  for (auto& received : group_.processes().take_messages(group_.channel()))
    messages.push_back(std::move(received));
  for (auto& received : messages) {
    Message message;
    if (received.bytes.size() != sizeof message) continue;  // of another version
    std::memcpy(&message, received.bytes.data(), sizeof message);
    if (message.run == run_) take(received.from, message);
    else if (early_ && static_cast<i32>(message.run - run_) > 0)
      early_->push_back(std::move(received));
  }
}

void TerminationDetector::look_for_others(bool ended) {
  auto& processes = group_.processes();
  if (processes.gone()) {
    verdict_.poison = std::max(verdict_.poison, Reason::lost);
    // A process that is gone may have left after the run's end, which its devices have told others.
    // These stores are here, and ranks will soon have seen them. After a process was lost, another
    // may still tell this one that it has swept. Then both come to different conclusions. Neither
    // has another run.
    if (!std::exchange(is_gone_, true)) gone_.renew();
    verdict_.nowhere |= gone_.ends();
    verdict_.over |= ended;  // there is nobody to wait for
  }
  if (!ranks_meet()) return;
  if (processes.awaited_before(group_.channel(), run_)) {
    verdict_.poison = std::max(verdict_.poison, Reason::failed);
    verdict_.nowhere = true;
    verdict_.over |= ended;
  }
  if (!warned_ && missing_.ends()) warn_of_missing();
}

// A process that has begun the run answers the first question, which process 0 asks.
void TerminationDetector::warn_of_missing() {
  warned_ = true;
  std::vector<u32> missing;
  if (!is_root()) {
    if (round_ == 0) missing.push_back(0);
  } else if (round_ == 1 && open_) {
    for (u32 process = 1; process < answers_.size(); ++process)
      if (!answers_[process].here) missing.push_back(process);
  }
  if (missing.empty()) return;
  warn(fmt::format("{} has waited {} for process {}: all processes must call it", operation_,
                   missing_.text(), fmt::join(missing, ", ")));
}

void TerminationDetector::take(u32 from, Message const& message) {
  switch (message.type) {
    case Type::poison: verdict_.poison = std::max(verdict_.poison, message.reason); break;
    case Type::left: verdict_.nowhere = true; break;
    case Type::ended: ++ended_; break;
    case Type::over: verdict_ = {true, message.reason, true}; break;
    case Type::question: round_ = message.round, to_answer_ = true; break;
    case Type::answer:
      if (message.round == round_) note(from, message);
      break;
  }
}

// Called before new questions are taken, because `own` was found out before they came. They are
// answered the next time.
void TerminationDetector::answer(Own const& own) {
  if (!to_answer_ || !own.known) return;
  to_answer_ = false;
  if (is_root()) note(0, answer_to(own));
  else send(0, answer_to(own));
}

TerminationDetector::Message TerminationDetector::answer_to(Own const& own) const {
  return {.type = Type::answer,
          .round = round_,
          .quiet = own.quiet.has_value(),
          .doing = own.doing,
          .number = own.quiet.value_or(0),
          .signs_of_life = own.signs_of_life,
          .sent = own.sent,
          .received = own.received};
}

void TerminationDetector::note(u32 from, Message const& answer) {
  answers_[from] = {.here = true,
                    .quiet = answer.quiet != 0 ? std::optional(answer.number) : std::nullopt,
                    .signs_of_life = answer.signs_of_life,
                    .doing = answer.doing,
                    .sent = answer.sent,
                    .received = answer.received};
}

void TerminationDetector::ask() {
  auto const now = Clock::now();
  if (!open_ && now >= next_round_) {
    open_ = true;
    ++round_;
    std::ranges::fill(answers_, Answer{});
    to_answer_ = true;
    send(Processes::everyone, {.type = Type::question, .round = round_});
  }
  if (!open_ || !std::ranges::all_of(answers_, &Answer::here)) return;
  open_ = false;
  next_round_ = now + between_rounds;
  if (auto const reason = conclude()) {
    poison(*reason);
  }
}

std::optional<Reason> TerminationDetector::conclude() {
  bool quiet = true, life = false;
  Doing doing;
  u64 on_the_way = 0;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    quiet &= answers_[i].quiet.has_value() && before_[i].quiet == answers_[i].quiet;
    life |= !before_[i].here || before_[i].signs_of_life != answers_[i].signs_of_life;
    doing += answers_[i].doing;
    on_the_way += answers_[i].sent - answers_[i].received;
  }
  before_ = answers_;
  if (life || !doing.must_get_on()) deadline_.renew();
  if (quiet && on_the_way == 0) return Reason::deadlock;
  return deadline_.ends() && !watched_by_debugger(deadline_) ? std::optional(Reason::deadline)
                                                             : std::nullopt;
}

}  // namespace meshpost::detail
