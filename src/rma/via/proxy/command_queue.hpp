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

/// The host's side of a device's command queue (meshpost/rma/command_queue.hpp), and its copy
/// engines.
///
/// Short bytes go in commands. Longer ones are copied to the device. The next message in order is
/// then a command whose `ready` the same stream stores behind the copy. So a later command never
/// overtakes earlier bytes. Ranks carry out commands in order, and a command that must wait for a
/// copy is not ready before the copy is done. Pieces that lie behind each other are copied as one,
/// out of a chunk of pinned memory. Bytes that lie in such memory already are copied from there.
///
/// But a copy overtakes commands that nobody has carried out yet. So its bytes for the same places
/// are sent once more, in commands behind those. The copy and an earlier command may come in either
/// order; these commands come behind both. read() and write() ignore commands: by the contract,
/// nothing is in flight to the bytes that they touch.
class CommandQueueAccess : public Access {
 public:
  explicit CommandQueueAccess(Device& device);
  ~CommandQueueAccess() override;
  CommandQueueAccess(CommandQueueAccess const&) = delete;
  CommandQueueAccess& operator=(CommandQueueAccess const&) = delete;

  void begin() override;
  void end() override;
  void drop() override;
  CommandQueue command_queue() const override;
  void deliver(Delivery const& delivery) override;
  void read(void const* source, u64 bytes, Take take) override;
  void write(void* target, std::string_view bytes, Keep keep, std::function<void()> then) override;
  std::span<char> pinned() const override { return out_of_.memory(); }
  bool poll() override;
  bool completed() const override;
  bool busy() const override { return under_way_.load(std::memory_order_acquire) != 0; }
  bool has_pending_commands() const override;

 private:
  struct Open {  // a chunk that is being filled
    PinnedCopies::Chunk chunk;
    char* target = nullptr;
    u64 filled = 0;
  };
  struct Pending {  // a command with bytes that may not be opened yet
    char* target;
    u64 bytes;
    u32 command;  // `written_` behind it
  };
  struct Kept {  // until there is room
    Delivery delivery;
    std::string bytes;
  };

  bool try_deliver(Delivery const& delivery);
  u32 room() const;
  void forget_done();
  std::vector<Pending*> pending_under(char const* target, u64 bytes);
  bool copy(Delivery const& delivery);
  bool append(Delivery const& delivery);
  void flush();
  void write_command(via::Message message, std::string_view bytes);
  void count_what_is_under_way();
  void carry_out(u32 number);
  void raise(via::Signal const& count);
  void reset();

  Device& device_;
  Allocation commands_, bytes_, applied_, words_;
  PinnedCopies into_, out_of_;
  u32 written_ = 0;  // commands
  std::atomic<u32> written_to_all_{0};
  std::vector<Pending> pending_;
  std::optional<Open> open_;
  std::shared_ptr<Event> last_copy_;  // into the device; commands must not overtake it
  std::deque<Kept> backlog_;
  std::atomic<u64> under_way_{0}, kept_{0};
};

}  // namespace meshpost::detail
