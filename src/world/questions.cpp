#include "world/questions.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/pauses.hpp"
#include "world/join_engine.hpp"

namespace meshpost {
namespace {

constexpr char present = '\1';  // the answer to the empty question

i64 now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// For that long after an answer the other process's thread is likely to look, or sleeps for less
// than the other way takes.
constexpr i64 awake_for = 1'000'000;
// A question after a pause does not come by the engine. But the engine has to be looked at, as
// other processes may be late with it.
constexpr ProgressThread::Pace pace{.short_sleeps = 40,
                                    .longest_sleep = std::chrono::milliseconds(20)};

}  // namespace

Questions::Questions(ProcessGroup const& group, Answer answer)
    : group_(group),
      answer_(std::move(answer)),
      peers_(group.count()),
      thread_(group, {.user = "World", .operation = "ask", .operations = "questions"}, pace) {
  if (!group_.alone())
    group_.processes().answer(group_.channel(), [this](u32 from, std::string const& question) {
      return take(from, question);
    });
}

Questions::~Questions() {
  if (!group_.alone()) group_.processes().answer(group_.channel(), nullptr);
}

// The asker will go on by the engine.
std::string Questions::take(u32 from, std::string const& question) {
  if (peers_[from].joined) thread_.wake();
  return question.empty() ? std::string{present} : answer_(from, question);
}

void Questions::join(std::string const& user, std::string const& engine,
                     std::function<bool(u32)> const& talks_to) {
  auto joined = join_engine(group_, user, engine, net::Gpus::no, talks_to);
  std::unique_ptr<QuestionServer> server;
  // Together: where this fails in one, the others must not go on without it.
  group_.together(user, [&] {
    server = std::make_unique<QuestionServer>(
        std::move(joined), group_,
        [this](u32 from, std::string_view question) { return answer_(from, question); });
    thread_.start(true);
  });
  server_ = server.get();
  thread_.add(std::move(server), true);
  for (u32 process = 0; process < peers_.size(); ++process)
    peers_[process].joined = talks_to(process);
}

void Questions::end(bool agreed) { thread_.stop(agreed); }

bool Questions::is_awake(u32 process) const {
  return now() - peers_[process].answered.load(std::memory_order_relaxed) < awake_for;
}

Questions::Begun Questions::begin(u32 process, std::string question) {
  Begun begun{.process = process};
  if (!by_engine(process)) {
    begun.answer = group_.processes().ask(group_.channel(), process, question);
    return begun;
  }
  if (is_awake(process) && server_->reaches(process) && question.size() <= server_->most()) {
    begun.asked = server_->ask(process, std::move(question));
    thread_.wake();
    return begun;
  }
  thread_.wake();
  begun.answer = group_.processes().ask(group_.channel(), process, question);
  peers_[process].answered = now();
  return begun;
}

std::string Questions::end(Begun begun) {
  if (!begun.asked) return std::move(begun.answer);
  for (Pauses pauses; !begun.asked->over();) pauses.rest();
  u32 const process = begun.process;
  if (auto answer = begun.asked->take()) {
    peers_[process].answered = now();
    return std::move(*answer);
  }
  // Most often it is lost to the job too, which says why.
  if (group_.processes().ask(group_.channel(), process, "").empty()) return {};
  throw out_of_reach(process);
}

Error Questions::out_of_reach(u32 process) const {
  auto const& processes = group_.processes();
  return {Kind::peer_lost, "ask process " + std::to_string(process),
          fmt::format("nothing comes from {} any more by {}; whether it has done what was asked is "
                      "not known",
                      processes.name(process), server_->channel().engine().name()),
          "see its own messages and the network between the hosts, and start the job again"};
}

}  // namespace meshpost
