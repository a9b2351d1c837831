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

/// A process that is no more.
struct Loss {
  u32 process = 0;
  bool left = false;  ///< it ended well; false: it was killed, crashed, or its host is out of reach
  std::string how;    ///< for people
};

/// The processes of a job, connected: they agree on what they do together, and know who is alive.
/// All connections go to process 0, which passes on. Nothing here is fast; what ranks send each
/// other takes other ways.
///
/// Thread-safe.
class Processes {
 public:
  /// Those of this process's job, joined at the first call. Null: this process is alone.
  /// \throws Error(bad_environment, deadline, version_mismatch), at each call again
  static std::shared_ptr<Processes> of_job();

  /// Returns when all have joined.
  /// \throws Error(deadline) naming the missing; Error(bad_environment) for a wrong secret, a
  /// number that is taken; Error(version_mismatch)
  explicit Processes(Job const& job);
  /// Leaves; the others go on without.
  ~Processes();
  Processes(Processes const&) = delete;
  Processes& operator=(Processes const&) = delete;

  u32 number() const;
  u32 count() const;
  Job const& job() const;
  std::string name(u32 process) const;  ///< "process 3 (node-b, pid 123)"
  /// For one more user of exchanges and posts: the same number in all processes, as all take theirs
  /// in the same order.
  u32 take_channel();

  /// Everybody's `mine`, by process. Collective: on each channel all processes make the same
  /// exchanges in the same order. `operation` is for messages, and must be equal everywhere.
  /// \throws Error(peer_lost) if one is lost or has left; Error(misuse) where operations differ
  std::vector<std::string> exchange(u32 channel, std::string const& operation, std::string mine,
                                    Waiters waiters = Waiters::impatient);

  /// How many there have been: the same in all processes between two of them.
  u64 exchanges(u32 channel) const;
  /// In how many of them operations differed: likewise.
  u64 mismatches(u32 channel) const;

  /// From now on this process is at that step of what it does on a channel besides exchanges.
  void come_to(u32 channel, u32 step);
  /// Whether another process, which has not come to that step, has waited for some time for this
  /// one in an exchange: then it never will. The same in all processes at that step.
  bool awaited_before(u32 channel, u32 step) const;

  struct Post {
    u32 from;
    std::string bytes;
  };
  static constexpr u32 everyone = ~0u;  ///< but the sender
  /// Sends to one process or all others, in order. What is sent to a process that is lost is lost.
  /// False: nothing was sent, as process 0 is gone, which passes it on.
  bool post(u32 channel, u32 to, std::string const& bytes);
  /// What has come since the last call.
  std::vector<Post> take_posts(u32 channel);

  /// Returns when some have come, a process is gone, or after `patience`.
  void wait_for_posts(u32 channel, std::chrono::microseconds patience);

  using Answer = std::function<std::string(u32 from, std::string const& question)>;
  /// What this process answers to ask() on a channel, from the thread that reads connections: it
  /// must be quick, and must not call back. Null: nothing any more.
  void answer(u32 channel, Answer answer);
  /// Another process's answer, whatever that one does meanwhile. \throws Error(peer_lost)
  std::string ask(u32 channel, u32 process, std::string const& question);

  /// This host's address, as others of the job reach it.
  std::string own_address() const;

  /// The first process that was lost; one that has left is none.
  std::optional<Loss> lost() const;
  /// The same, or else the first that has left.
  std::optional<Loss> gone() const;
  /// That process, if it was lost or has left.
  std::optional<Loss> gone(u32 process) const;
  /// All of those.
  std::vector<Loss> all_gone() const;
  /// What an operation throws that can't go on without it.
  Error lost_error(std::string const& operation, Loss const& loss) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace meshpost
