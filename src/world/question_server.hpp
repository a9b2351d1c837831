#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/error.hpp"
#include "world/out_of_band.hpp"
#include "world/progress_thread.hpp"

namespace meshpost {

/// Questions to other processes and their answers by a network engine.
///
/// Called by: the progress thread, but for what is said to be for any.
class QuestionServer : public Server, net::Channel::Client {
 public:
  /// This process's answer. It may not wait for other processes. If it throws, no more is answered
  /// to the asker.
  using Answer = std::function<std::string(u32 from, std::string_view question)>;

  /// A question under way.
  class Asked {
   public:
    bool over() const { return over_.load(std::memory_order_acquire); }
    /// The answer. None: the process is lost to the engine. When it is over().
    std::optional<std::string> take() { return std::move(answer_); }

   private:
    friend class QuestionServer;
    void end(std::optional<std::string> answer) {
      answer_ = std::move(answer);
      over_.store(true, std::memory_order_release);
    }
    std::optional<std::string> answer_;
    std::atomic<bool> over_{false};
  };
  using AskedPtr = std::shared_ptr<Asked>;

  QuestionServer(std::unique_ptr<net::Engine> engine, ProcessGroup const& group, Answer answer);

  /// Begins a question of at most `most` bytes. Those to one process are answered in their order.
  /// Wake the progress thread then. Any thread.
  AskedPtr ask(u32 process, std::shared_ptr<std::string> question);
  /// Bytes of a question or an answer.
  static constexpr u64 most = (u64{256} << 10) + 1024;  // a piece of a stream's put, and more
  /// True if the engine reaches that process, as far as is known. Any thread, as the next.
  bool reaches(u32 process) const { return !peers_[process].lost.load(std::memory_order_acquire); }
  // If not:
  /// True if questions to it were under way: it has carried them out, or may do so later, or never.
  bool in_doubt(u32 process) const { return peers_[process].in_doubt; }
  std::string const& why(u32 process) const { return peers_[process].why; }

  bool work() override;
  bool idle() const override;
  void close(Error const& error) override;
  net::Channel& channel() override { return channel_; }

 private:
  static constexpr u32 message_kind = 3;
  struct Header {
    enum class Type : u64 { question, answer };
    Type type = Type::question;
    u64 number = 0;  ///< the asker's; the answer repeats it
    u64 bytes = 0;   ///< of the whole; messages with its parts follow each other
  };
  struct Outgoing {
    Header header;
    std::shared_ptr<std::string> bytes;
    u64 sent = 0;  // of these
  };
  struct Request {
    u32 process;
    std::shared_ptr<std::string> question;
    AskedPtr asked;
  };
  struct Peer {
    std::deque<Outgoing> queue{};
    Header comes{};                 // the parts of this one have come:
    std::string parts{};            // not all
    std::atomic<bool> lost{false};  // the next two don't change then
    bool in_doubt = false;
    std::string why{};
  };
  struct Waiting {
    u32 process;
    AskedPtr asked;
  };

  void take_requests();
  bool send_queued(u32 process);
  void queue(u32 process, Header::Type type, u64 number, std::shared_ptr<std::string> bytes);
  void take(u32 process, Header const& header, std::string_view bytes);
  void on_message(u32 process, net::Channel::Message const& come) override;
  void on_lost(u32 process, std::string const& why) override;

  Answer const answer_;
  u64 last_ = 0;                  // question
  std::map<u64, Waiting> asked_;  // by number
  std::deque<Peer> peers_;        // by process
  std::mutex mutex_;              // of what follows
  std::vector<Request> requests_;
  bool over_ = false;  // never changes again
  Notices out_of_band_;
  net::Channel channel_;
  u64 const part_;  // bytes of a message
};

}  // namespace meshpost
