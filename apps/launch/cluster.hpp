#pragma once
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "guard.hpp"
#include "orders.hpp"
#include "place.hpp"
#include "plan.hpp"
#include "there.hpp"

namespace meshpost::launch {

/// Processes on several hosts, started by an agent on each.
///
/// All agents are started at once. When all have greeted, process 0's host listens and says at
/// which addresses; all hosts try them; the first that leads there from each is where the processes
/// meet. When process 0's host has left the door to process 0, all are started.
class Cluster : public Place {
 public:
  Cluster(Plan plan, Orders orders, rlimit files, Reports& reports);
  ~Cluster() override;
  Cluster(Cluster const&) = delete;
  Cluster& operator=(Cluster const&) = delete;

  void watch(Poller& poller) override;
  void collect(pid_t child) override;
  void signal(int number) override;
  void give(std::string bytes) override;
  bool open() const override;
  void close() override;
  void cut() override;
  std::optional<Clock::time_point> next() const override;
  void on_time() override;

 private:
  struct Member {
    bool over = false;  // it has ended, or nobody knows
    u32 streams = 0;    // that may still bring something
  };

  std::vector<std::string> command_to(Host const& host) const;
  std::vector<u32> processes_on(u32 host) const;
  void on_greeting();
  void on_frame(u32 host, Frame const& frame);
  void on_listening(std::vector<std::string> const& answer);
  void try_all();
  void on_reached(u32 host, std::vector<std::string> const& addresses);
  void meet_at(std::string const& rendezvous);
  void start_all();
  void on_gone(u32 host, std::string const& why);
  void fail(std::string const& why, int status);
  void end_streams(u32 process);

  Plan plan_;
  Orders orders_;
  Reports& reports_;
  Guard guard_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<There>> agents_;  // of the hosts that have processes: the first ones
  std::string const text_;                      // by which it is known who listens
  std::vector<std::string> tried_;
  std::vector<std::vector<std::string>> reached_;  // by agent
  std::size_t greeted_ = 0, answered_ = 0;
  bool listens_ = false, started_ = false, failed_ = false;
  std::optional<Clock::time_point> deadline_;
  std::future<std::vector<std::string>> name_;  // what process 0's host's name means here
};

}  // namespace meshpost::launch
