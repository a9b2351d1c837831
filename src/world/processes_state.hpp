#pragma once
#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/patience.hpp"
#include "meshpost/base/descriptor.hpp"
#include "world/exchanges.hpp"
#include "world/line.hpp"
#include "world/processes.hpp"

// What is behind Processes: callers and one thread share it. The thread (processes_thread.cpp)
// reads, and alone closes connections.

namespace meshpost {

class Processes::Implementation {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Implementation(Job job);
  ~Implementation();
  Implementation(Implementation const&) = delete;
  Implementation& operator=(Implementation const&) = delete;

  u64 exchanges(u32 channel) const;
  u64 mismatches(u32 channel) const;
  void come_to(u32 channel, u32 step);
  bool awaited_before(u32 channel, u32 step) const;
  std::vector<std::string> exchange(u32 channel, std::string const& operation, std::string mine,
                                    Waiters waiters = Waiters::impatient);
  bool post(u32 channel, u32 to, std::string const& bytes);
  std::vector<Post> take_posts(u32 channel);
  void wait_for_posts(u32 channel, std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return lost_ || !posts_[channel].empty(); });
  }
  void answer(u32 channel, Answer answer) {
    std::scoped_lock const lock(mutex_);
    if (answer) answers_[channel] = std::move(answer);
    else answers_.erase(channel);
  }
  std::string ask(u32 channel, u32 process, std::string const& question);
  std::string own_address() const;
  std::optional<Loss> lost() const {
    std::scoped_lock const lock(mutex_);
    return lost_;
  }
  std::optional<Loss> gone() const {
    std::scoped_lock const lock(mutex_);
    return lost_ ? lost_ : first_gone_;
  }
  std::optional<Loss> gone(u32 process) const {
    std::scoped_lock const lock(mutex_);
    return gone_.at(process);
  }
  std::vector<Loss> all_gone() const;
  Error lost_error(std::string const& operation, Loss const& loss) const {
    std::scoped_lock const lock(mutex_);
    return gone_error(operation, loss);
  }
  u32 take_channel() {
    std::scoped_lock const lock(mutex_);
    return ++channels_;
  }
  Job const& job() const { return job_; }
  std::string name(u32 process) const {
    std::scoped_lock const lock(mutex_);
    return name_of(process);
  }

 private:
  bool hub() const { return job_.process == 0; }
  void admit(u32 process, std::unique_ptr<Line> line);
  void throw_lost(std::string const& operation) const;  // if one is
  void dismiss(Error const& error);                     // process 0: there will be no job
  void close();                                         // ends the thread
  void work();                                          // the thread
  bool is_done();                                       // whether it is
  void serve(u32 process);                              // one line of it
  void on_frame(u32 from, wire::Frame const& frame);
  void on_frame_at_hub(u32 from, wire::Frame const& frame);
  void bring(u32 process, Exchanges::Key key, std::string operation, std::string part,
             Waiters waiters, u32 step);
  void say_who_waits();
  void deliver(u32 from, u32 to, u32 channel, std::string const& bytes);
  void route_question(u32 from, wire::Header header, std::string const& bytes);
  void take_question(u32 from, wire::Header header, std::string const& bytes);
  void route_reply(wire::Header const& header, std::string const& bytes);
  void mark_gone(Loss const& loss);
  void look_after_lines();
  std::vector<std::string> warnings();
  void send(u32 line, wire::Header const& header, std::string_view bytes = {});
  void send_all(wire::Header const& header, std::string_view bytes, u32 but);
  void wake() { eventfd_write(wake_.get(), 1); }
  std::string name_of(u32 process) const;  // under the lock, as all that is private
  Error gone_error(std::string const& operation, Loss const& loss) const;
  [[noreturn]] void throw_gone(std::string const& operation) const;

  Job const job_;
  Descriptor const wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::chrono::milliseconds const beat_every_;
  std::chrono::milliseconds const
      longest_look_;          // between two of the thread: it sleeps half a beat
  mutable std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Line>> lines_;  // process 0: by process; others: one, to process 0
  std::vector<Patience> silences_;            // by line: who has been silent for too long is lost
  std::vector<std::optional<Loss>> gone_;     // by process: lost, or left
  std::optional<Loss> first_gone_;            // the others may have left because of it
  std::optional<Loss> lost_;
  std::optional<Error> refused_;
  std::vector<std::string> names_;
  Exchanges exchanges_;
  std::map<Exchanges::Key, Exchanges::Outcome> outcomes_;
  std::map<u32, u64> sequences_, mismatches_;
  std::map<u32, u32> steps_;
  struct Awaited {
    u64 sequence = 0;
    u32 step = 0;
  };
  std::map<u32, Awaited> awaited_;  // by channel: an exchange that others have waited in for long
  std::map<u32, std::vector<Post>> posts_;
  std::map<u32, Answer> answers_;
  u32 channels_ = 0;  // taken; 0 is our own
  u64 questions_ = 0;
  std::map<u64, std::string> replies_;
  Clock::time_point beat_at_{};
  bool closing_ = false;
  struct Farewell {  // of the thread: what is left to send, and when to leave it
    std::size_t output = ~std::size_t{0};
    bool finished = false;
    Patience patience;
  } farewell_;
  std::thread thread_;
};

}  // namespace meshpost
