#include "world/questions.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/deadline.hpp"
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

// First: others hear that nothing is answered here any more, by whichever way they ask.
void Questions::end(bool agreed) {
  if (!group_.alone()) group_.processes().answer(group_.channel(), nullptr);
  thread_.stop(agreed);
}

bool Questions::is_awake(u32 process) const {
  auto const& peer = peers_[process];
  return peer.under_way.load(std::memory_order_relaxed) != 0 ||
         now() - peer.answered.load(std::memory_order_relaxed) < awake_for;
}

std::string Questions::ask_slowly(u32 process, std::string const& question) {
  auto answer = group_.processes().ask(group_.channel(), process, question);
  peers_[process].answered = now();
  return answer;
}

Questions::Begun Questions::begin(u32 process, std::string question) {
  if (!by_engine(process)) return {.process = process, .answer = ask_slowly(process, question)};
  auto& peer = peers_[process];
  bool const reaches = server_->reaches(process);
  // In doubt: that process might carry out an older question after this one.
  if (peer.silent || (!reaches && server_->in_doubt(process)))
    return {.process = process, .answer = out_of_reach(process)};
  if (!reaches || !is_awake(process) || question.size() > QuestionServer::most) {
    thread_.wake();  // for the next question
    return {.process = process, .answer = ask_slowly(process, question)};
  }
  Begun begun{.process = process, .question = std::make_shared<std::string>(std::move(question))};
  begun.asked = server_->ask(process, begun.question);
  ++peer.under_way;
  thread_.wake();
  return begun;
}

void Questions::drop(Begun const& begun) {
  if (!begun.asked) return;
  await(begun);
  --peers_[begun.process].under_way;
}

std::string Questions::end(Begun begun) {
  if (!begun.asked) return std::move(begun.answer);
  u32 const process = begun.process;
  auto& peer = peers_[process];
  await(begun);
  --peer.under_way;
  if (!begun.asked->over()) return out_of_reach(process);
  if (auto answer = begun.asked->take()) {
    peer.answered = now();
    return std::move(*answer);
  }
  if (!server_->in_doubt(process)) return ask_slowly(process, *begun.question);  // was not sent
  return out_of_reach(process);
}

// Returns when it is over, or has been given up: a process may be there, and the thread that should
// answer not get on, for example in a copy to a GPU. Later than a channel finds out that a message
// is missing.
void Questions::await(Begun const& begun) {
  auto& silent = peers_[begun.process].silent;
  Deadline limit(2 * group_.processes().job().silence);
  for (Pauses pauses; !begun.asked->over() && !silent; pauses.rest())
    if (limit.ends() && !watched_by_debugger(limit)) silent = true;
}

// No answer, as that process answers nobody any more; or throws. Most often it is lost to the job
// too, whose error says why.
std::string Questions::out_of_reach(u32 process) const {
  auto& processes = group_.processes();
  if (processes.ask(group_.channel(), process, "").empty()) return {};
  std::string const operation = "ask process " + std::to_string(process);
  if (peers_[process].silent)
    throw Error(Kind::peer_lost, operation,
                fmt::format("{} is there, but its World has not answered for {:.3g} s",
                            processes.name(process),
                            std::chrono::duration<double>(2 * processes.job().silence).count()),
                "see if a copy of its device hangs; MESHPOST_PEER_DEADLINE may be too short");
  throw Error(Kind::peer_lost, operation,
              fmt::format("nothing comes from {} any more by {}: {}; whether it has done what was "
                          "asked is not known",
                          processes.name(process), server_->channel().engine().name(),
                          server_->why(process)),
              "see its own messages and the network between the hosts, and start the job again");
}

}  // namespace meshpost
