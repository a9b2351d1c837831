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

/// The messages between the processes of a World while a run is in progress: that their ranks have
/// ended, that the run must end, and those for finding a deadlock. Process 0 is the root. One
/// thread.
///
/// If ranks meet without their hosts (Agreement), a run that goes well ends without a message. Then
/// a process may leave without having sent anything. Another may not have begun yet, or may be
/// elsewhere and never begin. A process that must end such a run can't know if the run has ended
/// well elsewhere. It has not if any rank anywhere has left before the run's end, so the processes
/// tell this.
///
/// A deadlock is found in two rounds of questions. In each, every process says if all its ranks
/// wait for something that has not come. It also gives a number that changes whenever one of them
/// continues. If all say yes twice, with the same numbers, each was quiet from its first answer to
/// its second. So there is a moment, between the rounds, when all were quiet. Words that a rank had
/// written before that moment were seen by the ranks that answered after it, and did not help them.
/// Nobody has written since. So nobody will. A message that is still on a network was sent and not
/// received: the numbers show it.
class TerminationDetector {
 public:
  /// The number of ranks in each activity.
  struct Doing {
    u32 waiting = 0;    ///< or test the same counter repeatedly
    u32 computing = 0;  ///< do anything else
    u32 ending = 0;     ///< have ended, and wait for others at the run's end
    Doing& operator+=(Doing const& other);
    /// True if ranks must make progress before the deadline. A rank that computes may take its
    /// time, unless another waits for it. If all have ended but the run has not, none is left to
    /// compute.
    bool must_get_on() const { return waiting != 0 || (computing == 0 && ending != 0); }
  };

  TerminationDetector(ProcessGroup const& group, u32 run, std::chrono::milliseconds deadline);
  /// For processes whose ranks meet without their hosts in run `run`. `operation`: for a warning
  /// that some have not begun it. `early`: messages for later runs.
  TerminationDetector(ProcessGroup const& group, u32 run, std::chrono::milliseconds deadline,
                      std::string operation, std::vector<Processes::Message>& early);

  struct Own {
    bool ended = false;        ///< all ranks of this process have ended
    bool left = false;         ///< one has left before it reached the run's end
    bool known = true;         ///< false: `quiet` takes longer to find out
    std::optional<u64> quiet;  ///< they wait for what has not come, if the number stays the same
    u64 signs_of_life = 0;     ///< changes whenever a rank makes progress
    Doing doing{};
    u64 sent = 0, received = 0;  ///< messages, to and from all processes
  };
  struct Verdict {
    bool over = false;                 ///< the ranks of all processes have ended, or one is gone
    Reason poison = Reason::finished;  ///< if over, the reason from process 0: the same in all
    bool nowhere = false;              ///< the run ends well nowhere: no rank need wait for its end
  };
  bool ranks_meet() const { return early_ != nullptr; }
  /// Takes received messages, and sends its own. To be called about every millisecond.
  Verdict poll(Own const& own);
  /// Changes when a question has come: Own::quiet must have been found out since then.
  u32 round() const { return round_; }
  /// Tells the others to end the run.
  void poison(Reason reason);
  /// Returns when a message has come, or after `timeout`.
  void wait(std::chrono::microseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Type : u32 { poison, left, ended, over, question, answer };
  struct Message {
    u32 run = 0;
    Type type{};
    Reason reason{};
    u32 round = 0;
    u32 quiet = 0;  // 1: `number` is valid
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
  // If ranks meet without their hosts; else null.
  std::vector<Processes::Message>* const early_ = nullptr;
  std::string const operation_;
  Deadline missing_{std::chrono::milliseconds(0)};  // with processes that have not begun the run
  Deadline gone_{std::chrono::milliseconds(100)};   // for what one that is gone told devices
  bool is_gone_ = false, warned_ = false;

  bool told_ended_ = false;
  u32 ended_ = 0;  // the root: processes whose ranks have ended

  u32 round_ = 0;           // of questions: the last one asked, or received
  bool to_answer_ = false;  // the question waits for this process's answer

  // The root's questions.
  bool open_ = false;
  Clock::time_point next_round_;
  Deadline deadline_;  // polled at the end of a round: none ends while a process is stopped
  std::vector<Answer> answers_, before_;  // of this round and of the one before
};

}  // namespace meshpost::detail
