#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// Why a run was ended before its ranks ended by themselves; the strongest reason last.
enum class Reason : u32 { finished, deadline, deadlock, lost, failed };

/// What the processes of a World tell each other while a run is under way: that their ranks have
/// ended, that the run must end, and what is needed to find a deadlock. Process 0 is the root.
/// One thread.
///
/// Where ranks meet by themselves (Agreement), a run that goes well ends without a word. Then a
/// process may leave without having said anything, and another may not have begun yet, or be
/// elsewhere: it will never begin. Who must end such a run can't know whether it has ended well
/// elsewhere: it has not if a rank anywhere has left before the run's end, so this is said.
///
/// A deadlock is found in two rounds of questions. In each, every process says whether all its
/// ranks wait in vain, and a number that changes whenever one of them goes on. If all say yes
/// twice, with the same numbers, then each was quiet from its first answer to its second; so there
/// is a moment, between the rounds, when all were. What a rank had written before that moment was
/// seen by those who answered after it, and did not help them; and nobody has written since. So
/// nobody will. What is still on a network was sent and not received: the numbers tell.
class TerminationDetector {
 public:
  /// What ranks are at: how many.
  struct Doing {
    u32 waiting = 0;    ///< or test the same counter again and again
    u32 computing = 0;  ///< anything else than these
    u32 ending = 0;     ///< have ended, and wait for the others at the run's end
    Doing& operator+=(Doing const& other);
    /// Whether they have to get on before the deadline. One that computes may take its time, unless
    /// another waits for it; and none is left to compute where all have ended but the run has not.
    bool must_get_on() const { return waiting != 0 || (computing == 0 && ending != 0); }
  };

  TerminationDetector(ProcessGroup const& group, u32 run, std::chrono::milliseconds deadline);
  /// Of processes whose ranks meet by themselves in run `run`. `operation`: for a warning that some
  /// have not begun it. `early`: what has come for later runs.
  TerminationDetector(ProcessGroup const& group, u32 run, std::chrono::milliseconds deadline,
                      std::string operation, std::vector<Processes::Message>& early);

  struct Own {
    bool ended = false;        ///< all ranks of this process have
    bool left = false;         ///< one has, before it came to the run's end
    bool known = true;         ///< else `quiet` takes a while longer to find out
    std::optional<u64> quiet;  ///< they wait in vain, if the number is the same next time
    u64 signs_of_life = 0;     ///< changes whenever a rank gets on
    Doing doing{};
    u64 sent = 0, received = 0;  ///< messages, to and from all processes
  };
  struct Verdict {
    bool over = false;                 ///< the ranks of all processes have ended, or one is gone
    Reason poison = Reason::finished;  ///< if over, what process 0 says: the same in all
    bool nowhere = false;              ///< the run ends well nowhere: no rank need wait for its end
  };
  bool ranks_meet() const { return early_ != nullptr; }
  /// Takes what has come, and says what it has to. Every millisecond or so.
  Verdict poll(Own const& own);
  /// Changes when a question has come: what Own::quiet says must have been found out since.
  u32 round() const { return round_; }
  /// Tells the others to end the run.
  void poison(Reason reason);
  /// Returns when something has come, or after `timeout`.
  void wait(std::chrono::microseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Type : u32 { poison, left, ended, over, question, answer };
  struct Message {
    u32 run = 0;
    Type type{};
    Reason reason{};
    u32 round = 0;
    u32 quiet = 0;  // whether `number` means something
    Doing doing{};
    u64 number = 0, signs_of_life = 0;
    u64 sent = 0, received = 0;
  };
  struct Answer {
    bool here = false;
    std::optional<u64> quiet;
    u64 signs_of_life = 0;
    Doing doing{};
    u64 sent = 0, received = 0;
  };

  bool is_root() const { return group_.number() == 0; }
  void send(u32 to, Message message);
  void take(u32 from, Message const& message);
  void take_messages();
  void look_for_others(bool ended);
  void warn_of_missing();
  void answer(Own const& own);
  Message answer_to(Own const& own) const;
  void note(u32 from, Message const& answer);
  void ask();
  std::optional<Reason> conclude();

  ProcessGroup const& group_;
  u32 const run_;
  Verdict verdict_;
  // Where ranks meet; else null.
  std::vector<Processes::Message>* const early_ = nullptr;
  std::string const operation_;
  Deadline missing_{std::chrono::milliseconds(0)};  // with processes that have not begun the run
  Deadline gone_{std::chrono::milliseconds(100)};   // with what one that is gone has told devices
  bool is_gone_ = false, warned_ = false;

  bool told_ended_ = false;
  u32 ended_ = 0;  // the root: processes whose ranks have ended

  u32 round_ = 0;           // of questions: the last that was asked, or has come
  bool to_answer_ = false;  // it waits for this process's answer

  // The root's questions.
  bool open_ = false;
  Clock::time_point next_round_;
  Deadline deadline_;  // looks where a round ends: while one process is stopped, none does
  std::vector<Answer> answers_, before_;  // of this round and of the one before
};

}  // namespace meshpost::detail
