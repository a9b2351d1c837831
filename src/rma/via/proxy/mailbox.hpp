#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rma/via/access.hpp"
#include "rma/via/proxy/pinned_copies.hpp"

namespace meshpost::detail {

/// The host's side of a device's mailbox (meshpost/rma/mailbox.hpp), and its copy engines.
///
/// Short bytes go in letters. Longer ones are copied to the device. The next message in order is
/// then a letter whose `ready` the same stream stores behind the copy. So a later letter never
/// overtakes earlier bytes. Ranks open letters in order, and a letter that must wait for a copy is
/// not ready before the copy is done. Pieces that lie behind each other are copied as one, out of a
/// chunk of pinned memory. Bytes that lie in such memory already are copied from there.
///
/// But a copy overtakes letters that nobody has opened yet. So its bytes for the same places are
/// sent once more, in letters behind those. The copy and an earlier letter may come in either
/// order; these letters come behind both. read() and write() ignore letters: by the contract,
/// nothing is in flight to the bytes that they touch.
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
  void write(void* target, std::string_view bytes, Keep keep, std::function<void()> then) override;
  std::span<char> pinned() const override { return out_of_.memory(); }
  bool poll() override;
  bool settled() const override;
  bool busy() const override { return under_way_.load(std::memory_order_acquire) != 0; }
  bool unopened() const override;

 private:
  struct Open {  // a chunk that is being filled
    PinnedCopies::Chunk chunk;
    char* target = nullptr;
    u64 filled = 0;
  };
  struct Closed {  // a letter with bytes that may not be opened yet
    char* target;
    u64 bytes;
    u32 letter;  // `written_` behind it
  };
  struct Kept {  // until there is room
    Delivery delivery;
    std::string bytes;
  };

  bool try_deliver(Delivery const& delivery);
  u32 room() const;
  void forget_opened();
  std::vector<Closed*> closed_under(char const* target, u64 bytes);
  bool copy(Delivery const& delivery);
  bool append(Delivery const& delivery);
  void flush();
  void write_letter(via::Message message, std::string_view bytes);
  void count_what_is_under_way();
  void carry_out(Letter const& letter);
  void raise(via::Signal const& count);
  void reset();

  Device& device_;
  Allocation letters_, applied_, words_;
  PinnedCopies into_, out_of_;
  u32 written_ = 0;  // letters
  std::atomic<u32> written_to_all_{0};
  std::vector<Closed> closed_;
  std::optional<Open> open_;
  std::shared_ptr<Event> last_copy_;  // into the device; letters must not overtake it
  std::deque<Kept> backlog_;
  std::atomic<u64> under_way_{0}, kept_{0};
};

}  // namespace meshpost::detail
