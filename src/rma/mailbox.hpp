#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rma/access.hpp"

namespace meshpost::detail {

/// The host's side of a device's mailbox (meshpost/device/mailbox.hpp), and its copy engines
/// beside.
///
/// Short bytes go in letters. Longer ones are copied to the device, and what comes after them in
/// order is a letter whose `ready` the same stream stores behind the copy. So a later letter never
/// overtakes earlier bytes: ranks open letters in order, and one that must wait for a copy is not
/// ready before. Pieces that lie behind each other are copied as one.
///
/// A copy does overtake letters that nobody has opened yet. So its bytes for the same places go
/// once more, in letters behind those: whichever of the copy and an earlier letter comes last
/// there, these come behind both. read() and write() heed no letters: what they touch, by the
/// contract, is not on its way.
class MailboxAccess : public Access {
 public:
  explicit MailboxAccess(Device& device);
  ~MailboxAccess() override;
  MailboxAccess(MailboxAccess const&) = delete;
  MailboxAccess& operator=(MailboxAccess const&) = delete;

  void begin() override;
  void end() override;
  void drop() override;
  Mailbox mailbox() const override;
  void deliver(Delivery const& delivery) override;
  void read(void const* source, u64 bytes, Take take) override;
  void write(void* target, std::string_view bytes, std::function<void()> then) override;
  bool poll() override;
  bool busy() const override { return under_way_.load(std::memory_order_acquire) != 0; }
  bool unopened() const override;

 private:
  // Copies one way: a stream, and pinned memory that they pass through, a chunk each.
  class Direction {
   public:
    struct Transfer {
      std::function<void(Stream& stream, char* chunk)> start;
      std::function<void(char const* chunk)> end;
      std::optional<u32> chunk{};  // once it has started
    };
    explicit Direction(Device& device);
    Stream& stream() { return *stream_; }
    char* at(u32 chunk) const { return memory_.as<char>() + chunk * largest; }
    std::optional<u32> take();                         // a free chunk, held from now on
    std::shared_ptr<Event> copied(u32 chunk);          // what the stream does with it ends there
    void release(u32 chunk) { held_[chunk] = false; }  // to be taken again after that
    // Transfers start and end in their order, as soon as they can.
    void add(Transfer transfer);
    bool poll();
    u64 under_way() const { return transfers_.size(); }
    void drop();

   private:
    static constexpr u32 chunks = 16;
    void start();
    Allocation memory_;
    std::unique_ptr<Stream> stream_;
    std::array<std::shared_ptr<Event>, chunks> copies_{};  // that use a chunk, or did
    std::array<bool, chunks> held_{};
    u32 next_ = 0;
    std::deque<Transfer> transfers_;
  };
  struct Open {  // a chunk that gets filled
    u32 chunk = 0;
    char* target = nullptr;
    u64 filled = 0;
  };
  struct Closed {  // a letter with bytes that may not have been opened
    char* target;
    u64 bytes;
    u32 letter;  // written_ behind it
  };
  struct Kept {  // until there is room
    Delivery delivery;
    std::string bytes;
  };

  bool try_deliver(Delivery const& delivery);
  u32 room() const;
  void forget_opened();
  std::vector<Closed*> closed_under(Delivery const& delivery);
  bool append(Delivery const& delivery);
  void flush();
  void write_letter(Delivery const& delivery, std::string_view bytes);
  void count_what_is_under_way();
  void carry_out(Letter const& letter);
  void reset();

  Device& device_;
  Allocation letters_, applied_, words_;
  Direction into_, out_of_;
  u32 written_ = 0;  // letters
  std::atomic<u32> written_to_all_{0};
  std::vector<Closed> closed_;
  std::optional<Open> open_;
  std::shared_ptr<Event> last_copy_;  // into the device, of what letters must not overtake
  std::deque<Kept> backlog_;
  std::atomic<u64> under_way_{0}, kept_{0};
};

}  // namespace meshpost::detail
