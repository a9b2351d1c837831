#pragma once
#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/deadline.hpp"
#include "meshpost/base/descriptor.hpp"
#include "world/exchanges.hpp"
#include "world/line.hpp"
#include "world/processes.hpp"

// The state of Processes. Callers and one thread share it. Only the thread (processes_thread.cpp)
// reads from connections and closes them.

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
  void post(u32 channel, u32 to, std::string const& bytes);
  std::vector<Message> take_messages(u32 channel);
  void wait_for_messages(u32 channel, std::chrono::microseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return lost_ || !messages_[channel].empty(); });
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
  std::vector<std::string> silent() const;
  std::vector<Loss> losses() const {
    std::scoped_lock const lock(mutex_);
    std::vector<Loss> all;
    for (auto const& loss : gone_)
      if (loss && !loss->left) all.push_back(*loss);
    return all;
  }
  std::optional<Loss> gone(u32 process) const {
    std::scoped_lock const lock(mutex_);
    return gone_[process];
  }
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
  void throw_lost(std::string const& operation) const;  // if a process is lost
  void dismiss(Error const& error);                     // process 0: there will be no job
  void close();                                         // ends the thread
  void work();                                          // the thread
  bool is_done();                                       // true if the thread may end
  void serve(u32 process);                              // one line of the thread
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
  void note_silence();
  std::vector<std::string> warnings();
  void send(u32 line, wire::Header const& header, std::string_view bytes = {});
  void send_all(wire::Header const& header, std::string_view bytes, u32 but);
  void wake() { eventfd_write(wake_.get(), 1); }
  std::string name_of(u32 process) const;  // called with the lock held, like all that is private
  Error gone_error(std::string const& operation, Loss const& loss) const;
  [[noreturn]] void throw_gone(std::string const& operation) const;

  Job const job_;
  Descriptor const wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::chrono::milliseconds const beat_every_;
  std::chrono::milliseconds const
      longest_look_;          // between two looks of the thread: it sleeps half a beat
  mutable std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Line>> lines_;  // process 0: by process; others: one, to process 0
  std::vector<Deadline> silences_;            // by line: one that is silent for too long is lost
  std::vector<std::optional<Loss>> gone_;     // by process: lost, or left
  std::optional<Loss> first_gone_;            // others may have left because of it
  std::optional<Loss> lost_;
  std::map<u32, u32> silent_;  // by process: ms without a sign of life
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
  std::map<u32, std::vector<Message>> messages_;
  std::map<u32, Answer> answers_;
  u32 channels_ = 0;  // taken; channel 0 is our own
  u64 questions_ = 0;
  std::map<u64, std::string> replies_;
  Clock::time_point beat_at_{};
  bool closing_ = false;
  struct Farewell {  // of the thread: the bytes left to send, and when to stop sending
    std::size_t output = ~std::size_t{0};
    bool finished = false;
    Deadline timeout;
  } farewell_;
  std::thread thread_;
};

}  // namespace meshpost
