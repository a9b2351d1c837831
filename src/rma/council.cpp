#include "rma/council.hpp"

#include <algorithm>
#include <cstring>

namespace meshpost::detail {
namespace {

constexpr auto between_rounds = std::chrono::milliseconds(20);
constexpr auto longest_round = std::chrono::milliseconds(100);  // that counts for the deadline

}  // namespace

Council::Council(Peers const& peers, u32 run, std::chrono::milliseconds deadline)
    : peers_(peers),
      run_(run),
      next_round_(Clock::now() + between_rounds),
      deadline_(deadline, longest_round),
      answers_(peers.count()),
      before_(peers.count()) {}

void Council::send(u32 to, Message message) {
  message.run = run_;
  peers_.processes().post(peers_.channel(), to,
                          {reinterpret_cast<char const*>(&message), sizeof message});
}

void Council::poison(Reason reason) {
  verdict_.poison = std::max(verdict_.poison, reason);
  send(Processes::everyone, {.type = Type::poison, .reason = reason});
}

void Council::wait(std::chrono::microseconds patience) {
  peers_.processes().wait_for_posts(peers_.channel(), patience);
}

Council::Verdict Council::sit(Own const& own) {
  answer(own);
  if (own.ended && !told_ended_) {
    told_ended_ = true;
    if (chair()) ++ended_;
    else send(0, {.type = Type::ended});
  }
  for (auto const& post : peers_.processes().take_posts(peers_.channel())) {
    Message message;
    if (post.bytes.size() != sizeof message) continue;  // no version of ours
    std::memcpy(&message, post.bytes.data(), sizeof message);
    if (message.run == run_) take(post.from, message);  // else of a run that is over
  }
  // One that has left, too: none does while all is well, for the end of a run is an exchange.
  if (peers_.processes().gone()) {
    verdict_.poison = std::max(verdict_.poison, Reason::lost);
    verdict_.over |= own.ended;  // nobody can be waited for
  }
  if (!chair() || verdict_.over) return verdict_;
  if (ended_ == peers_.count()) {
    verdict_.over = true;
    send(Processes::everyone, {.type = Type::over, .reason = verdict_.poison});
  } else if (verdict_.poison == Reason::finished) {
    ask();
  }
  return verdict_;
}

void Council::take(u32 from, Message const& message) {
  switch (message.type) {
    case Type::poison: verdict_.poison = std::max(verdict_.poison, message.reason); break;
    case Type::ended: ++ended_; break;
    case Type::over: verdict_ = {true, message.reason}; break;
    case Type::question: round_ = message.round, to_answer_ = true; break;
    case Type::answer:
      if (message.round == round_) note(from, message);
      break;
  }
}

// `own` was found out before a question came that has just been taken: it answers the next time.
void Council::answer(Own const& own) {
  if (!to_answer_ || !own.known) return;
  to_answer_ = false;
  if (chair()) note(0, answer_to(own));
  else send(0, answer_to(own));
}

Council::Message Council::answer_to(Own const& own) const {
  return {.type = Type::answer,
          .round = round_,
          .quiet = own.quiet.has_value(),
          .waiting = own.waiting,
          .number = own.quiet.value_or(0),
          .signs_of_life = own.signs_of_life,
          .sent = own.sent,
          .received = own.received};
}

void Council::note(u32 from, Message const& answer) {
  answers_[from] = {true,
                    answer.quiet != 0 ? std::optional(answer.number) : std::nullopt,
                    answer.signs_of_life,
                    answer.waiting,
                    answer.sent,
                    answer.received};
}

void Council::ask() {
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

std::optional<Reason> Council::conclude() {
  bool quiet = true, life = false;
  u32 waiting = 0;
  u64 on_the_way = 0;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    quiet &= answers_[i].quiet.has_value() && before_[i].quiet == answers_[i].quiet;
    life |= !before_[i].here || before_[i].signs_of_life != answers_[i].signs_of_life;
    waiting += answers_[i].waiting;
    on_the_way += answers_[i].sent - answers_[i].received;
  }
  before_ = answers_;
  if (life || waiting == 0) deadline_.renew();
  if (quiet && on_the_way == 0) return Reason::deadlock;
  return deadline_.ends() && !watched_by_debugger(deadline_) ? std::optional(Reason::deadline)
                                                             : std::nullopt;
}

}  // namespace meshpost::detail
