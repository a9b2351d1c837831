#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "world/question_server.hpp"

namespace meshpost {

/// A process's questions to others of its group, and its answers to theirs. Two ways:
///
/// - By Processes::ask. Slow, because its connections are encrypted and go by way of process 0. But
///   its thread sleeps until something comes.
/// - By the network engine, if both processes are joined by one. The threads that look at it sleep
///   ever longer while nothing happens.
///
/// So after a pause the first question takes the first way, and wakes both threads for the next
/// ones. The two ways have no order between them: who needs one waits for an answer first.
class Questions {
 public:
  /// This process's answer, not empty. It may not wait for other processes, nor throw. Any thread,
  /// also two at once. Empty: it can't be answered any more.
  using Answer = std::function<std::string(u32 from, std::string_view question)>;

  Questions(ProcessGroup const& group, Answer answer);
  ~Questions();
  Questions(Questions const&) = delete;
  Questions& operator=(Questions const&) = delete;

  /// Joins the processes by an engine of that name, each with those that `talks_to` names.
  /// Collective. `user`: for errors, as "World". \throws Error(bad_environment) in all processes
  void join(std::string const& user, std::string const& engine,
            std::function<bool(u32)> const& talks_to);
  /// When no process asks this one any more, or with `agreed` false. The engine is used no more,
  /// unless its thread hangs().
  void end(bool agreed);
  /// True if it must be kept for ever. After end().
  bool hangs() const { return thread_.hangs(); }

  /// A question under way, or its answer.
  struct Begun {
    u32 process = 0;
    QuestionServer::AskedPtr asked{};
    std::shared_ptr<std::string> question{};  ///< to ask again if it was not sent
    std::string answer{};

    bool is_over() const { return !asked || asked->over(); }
  };
  /// Begins a question, which must be end()ed. Any thread. \throws Error(peer_lost)
  Begun begin(u32 process, std::string question);
  /// Its answer; empty if that process answers no more. \throws Error(peer_lost)
  std::string end(Begun begun);
  /// Instead of end(), after an error: waits until it is not carried out later.
  void drop(Begun const& begun);
  /// Bytes of a question or an answer that can go by the engine to that process. 0: none does.
  u64 most(u32 process) const {
    return by_engine(process) && server_->reaches(process) ? QuestionServer::most : 0;
  }

 private:
  struct Peer {
    bool joined = false;
    std::atomic<i64> answered{0};     // when it last did, in ns of the steady clock
    std::atomic<u32> under_way{0};    // questions by the engine
    std::atomic<bool> silent{false};  // it has not answered for too long
  };
  bool by_engine(u32 process) const { return server_ && peers_[process].joined; }
  bool is_awake(u32 process) const;
  std::string take(u32 from, std::string const& question);
  std::string ask_slowly(u32 process, std::string const& question);
  void await(Begun const& begun);
  std::string out_of_reach(u32 process) const;

  ProcessGroup const& group_;
  Answer const answer_;
  std::deque<Peer> peers_;
  ProgressThread thread_;
  QuestionServer* server_ = nullptr;
};

}  // namespace meshpost
