#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "compat/mp/engine.hpp"
#include "meshpost/rma/world.hpp"

namespace meshpost::compat::mp {

/// A stream of the program, and the word to which it stores the numbers of its waits.
class UserStream {
 public:
  /// `owned`: null for a stream that others own.
  UserStream(Stream& stream, std::unique_ptr<Stream> owned, Device& device);
  ~UserStream() { keep_for_ever(std::move(begun_)); }
  UserStream(UserStream const&) = delete;
  UserStream& operator=(UserStream const&) = delete;
  Stream& stream() const { return stream_; }
  /// Held while requests are posted on the stream: it takes them in the order that peers do.
  std::mutex& mutex() { return mutex_; }
  /// Later work of the stream begins when the request is complete.
  void wait(Engine& engine, std::string const& operation, u64 request);

 private:
  std::unique_ptr<Stream> owned_;
  Stream& stream_;
  Allocation begun_;
  u32 waits_ = 0;
  std::mutex mutex_;
};

/// An operation of a descriptor queue.
struct QueuedOperation {
  enum Kind : u8 { post, wait } kind;
  u64 request;
};

/// From mp_init to mp_finalize. Handles of the C interface are numbers that are never used again,
/// also not by a later session.
class Session {
 public:
  /// Collective over the processes of `options`. `gpu`: -1 for none.
  Session(WorldOptions options, std::vector<int> const& peers, int gpu);
  ~Session();
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  Engine& engine() { return *engine_; }
  u32 process() const { return world_.process(); }
  u32 processes() const { return world_.processes(); }
  /// Returns when all processes have called it, and what this one has begun is complete.
  void finish();

  u64 add_registration(void* memory, u64 bytes);
  void drop_registration(u64 registration);
  /// \throws Error(bad_argument) unless the bytes lie in the registration
  void check_registered(std::string const& operation, u64 registration, void const* memory,
                        u64 bytes) const;

  /// Collective.
  u64 create_window(void* memory, u64 bytes);
  void destroy_window(u64 window);
  /// The number that all processes use for it. \throws Error(misuse)
  u32 number_of_window(std::string const& operation, u64 window) const;

  UserStream& stream(std::string const& operation, void* native);

  u64 add_queue();
  void drop_queue(u64 queue);
  /// \throws Error(misuse)
  void add_to_queue(std::string const& operation, u64 queue,
                    std::vector<QueuedOperation> const& operations);
  std::vector<QueuedOperation> queued(std::string const& operation, u64 queue);
  void clear_queue(std::string const& operation, u64 queue);

 private:
  struct Registered {
    char const* memory;
    u64 bytes;
  };
  std::optional<Error> lost(u32 process) const;
  std::vector<QueuedOperation>& queue(std::string const& operation, u64 queue);

  World world_;
  Window<std::byte> window_;
  std::shared_ptr<Device> gpu_;    // null: none
  std::shared_ptr<Device> words_;  // in whose pinned memory streams find words
  std::unique_ptr<Engine> engine_;
  mutable std::mutex mutex_;
  std::map<u64, Registered> registered_;
  std::map<u64, std::vector<QueuedOperation>> queues_;
  std::map<void*, UserStream> streams_;
  std::map<u64, u32> windows_;  // their numbers
  u32 windows_made_ = 0;
};

/// Makes the process's session. \throws Error(misuse) if there is one
void begin_session(WorldOptions const& options, std::vector<int> const& peers, int gpu);
/// \throws Error(misuse) if there is none
std::shared_ptr<Session> session(std::string const& operation);
void end_session();

}  // namespace meshpost::compat::mp
