#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"
#include "world/exchanges.hpp"
#include "world/job.hpp"

namespace meshpost {

/// A process that has ended.
struct Loss {
  u32 process = 0;
  bool left = false;  ///< it ended well; false: it was killed, crashed, or its host is out of reach
  std::string how;    ///< as text for users
};

/// The connected processes of a job. They agree on what they do together, and know who is alive.
/// All connections go to process 0, which forwards messages. Nothing here is fast: messages of
/// ranks take other ways. Thread-safe.
///
class Processes {
 public:
  /// The processes of this process's job, joined at the first call. Null if this process is alone.
  /// \throws Error(bad_environment, deadline, version_mismatch), the same again at each call
  static std::shared_ptr<Processes> of_job();

  /// Returns when all have joined.
  /// \throws Error(deadline) that names the missing; Error(bad_environment) for a wrong secret, or
  /// a number that is taken; Error(version_mismatch)
  explicit Processes(Job const& job);
  /// Leaves the job; the others go on without this process.
  ~Processes();
  Processes(Processes const&) = delete;
  Processes& operator=(Processes const&) = delete;

  u32 number() const;
  u32 count() const;
  Job const& job() const;
  std::string name(u32 process) const;  ///< "process 3 (node-b, pid 123)"
  /// A number for one more user of exchanges and messages. It is the same in all processes, as all
  /// take their numbers in the same order.
  u32 take_channel();

  /// Returns `mine` of every process, by process. Collective: on each channel all processes make
  /// the same exchanges in the same order. `operation` is for messages, and must be equal
  /// everywhere.
  /// \throws Error(peer_lost) if a process is lost or has left; Error(misuse) if operations differ
  std::vector<std::string> exchange(u32 channel, std::string const& operation, std::string mine,
                                    Waiters waiters = Waiters::impatient);

  /// How many exchanges there have been. Between two exchanges it is the same in all processes.
  u64 exchanges(u32 channel) const;
  /// In how many of them operations differed; the same in all processes, likewise.
  u64 mismatches(u32 channel) const;

  /// This process has reached `step` of its work on a channel besides exchanges.
  void come_to(u32 channel, u32 step);
  /// True if another process has waited for some time for this one in an exchange, and has not
  /// reached `step`. Then it never will. The same in all processes at that step.
  bool awaited_before(u32 channel, u32 step) const;

  struct Message {
    u32 from;
    std::string bytes;
  };
  static constexpr u32 everyone = ~0u;  ///< except the sender
  /// Sends to one process or all others, in order. A message to a lost process is dropped.
  void post(u32 channel, u32 to, std::string const& bytes);
  /// The messages that have come since the last call.
  std::vector<Message> take_messages(u32 channel);

  /// Returns when messages have come, a process is gone, or after `timeout`.
  void wait_for_messages(u32 channel, std::chrono::microseconds timeout);

  using Answer = std::function<std::string(u32 from, std::string const& question)>;
  /// `answer` is this process's answer to ask() on a channel. The thread that reads connections
  /// calls it: it must be quick, and must not call back. Null: no answers any more.
  void answer(u32 channel, Answer answer);
  /// Returns another process's answer. That process may be busy with anything.
  /// \throws Error(peer_lost)
  std::string ask(u32 channel, u32 process, std::string const& question);

  /// This host's address, as the other processes reach it.
  std::string own_address() const;

  /// The first process that was lost; one that has left does not count.
  std::optional<Loss> lost() const;
  /// The same, or else the first one that has left.
  std::optional<Loss> gone() const;
  /// All processes that were lost so far, by number.
  std::vector<Loss> losses() const;
  /// Processes that have given no sign of life for several times as long as usual, as text for
  /// users. They may have been stopped, and are not lost yet. Empty after the loss of process 0,
  /// through which the others hear of it.
  std::vector<std::string> silent() const;
  /// How this process was lost or has left; nothing if it is there. When process 0 is gone, no
  /// message reaches others, and no process learns of further losses.
  std::optional<Loss> gone(u32 process) const;
  /// The error of an operation that can't go on without that process.
  Error lost_error(std::string const& operation, Loss const& loss) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace meshpost
