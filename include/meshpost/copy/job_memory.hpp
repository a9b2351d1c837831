#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshpost/copy/copy.hpp"

// Copies between the processes of a job. They are one-sided: the owner of the memory makes no call.

namespace meshpost {

/// The way of bytes to or from exposed memory.
enum class CopyPath : u8 {
  own,      ///< it is this process's memory: an ordinary copy
  mapped,   ///< another process's, mapped here once: an ordinary copy
  kernel,   ///< the operating system reads and writes the other process's memory
  staged,   ///< a thread of its owner, through memory that both processes share
  network,  ///< a thread of its owner, through a network engine
};
std::string_view to_string(CopyPath path);

/// Properties of one process's part of exposed memory.
struct ExposedPart {
  Bytes size{};
  MemoryKind memory = MemoryKind::pageable;
  std::string device{};    ///< the device it is on, as its process names it; empty: plain memory
  bool same_node = false;  ///< in reach of this process's loads and stores
  CopyPath path = CopyPath::own;
  std::string why{};  ///< why no faster path is used, and a remedy; empty: it is the fastest
};

/// A range of exposed memory. Copyable. It may outlive the memory; copies then throw.
class RemoteBytes {
 public:
  u32 process() const { return process_; }
  Bytes size() const { return size_; }

  struct Exposure;  // of the library

 private:
  friend class Exposed;
  friend class RemoteCopy;
  // `size` before `offset`, so that two integers are not neighbours.
  RemoteBytes(std::shared_ptr<Exposure const> exposure, u32 process, Bytes size, u64 offset)
      : exposure_(std::move(exposure)), process_(process), size_(size), offset_(offset) {}
  std::shared_ptr<Exposure const> exposure_;
  u32 process_;
  Bytes size_;
  u64 offset_;
};

/// Memory of a job: every process has exposed a part of it. Movable. Its destructor releases this
/// process's part. It returns when no copy uses that part any more. From then on copies from and to
/// it throw, in every process. The other processes' parts stay.
class Exposed {
 public:
  Exposed() = default;
  explicit Exposed(std::shared_ptr<RemoteBytes::Exposure> exposure)
      : exposure_(std::move(exposure)) {}
  ~Exposed() { end(); }
  Exposed(Exposed&&) noexcept = default;
  Exposed& operator=(Exposed&& other) noexcept {
    if (this != &other) end();
    exposure_ = std::move(other.exposure_);
    return *this;
  }
  Exposed(Exposed const&) = delete;
  Exposed& operator=(Exposed const&) = delete;

  /// \throws Error(bad_argument) if there is no such process; Error(misuse) if this is empty
  ExposedPart const& part(u32 process) const;
  /// `size` bytes of a process's part, from `offset` on. \throws Error(bad_argument) for a range
  /// outside of it
  RemoteBytes at(u32 process, u64 offset, Bytes size) const;
  /// Releases this process's part now, as the destructor does.
  /// \throws Error(misuse) after fork(): the part is the parent's
  void release();

 private:
  void end();
  std::shared_ptr<RemoteBytes::Exposure> exposure_;
};

struct JobMemoryOptions {
  std::string net{};  ///< engine between nodes; empty: MESHPOST_NET, else the best
  /// The fastest path that may be used to other processes' memory, for comparisons: mapped, kernel
  /// or staged.
  CopyPath fastest = CopyPath::mapped;
};

/// Lets the processes of a job use each other's memory: each exposes memory, and all copy from and
/// to it. It also works for one process alone.
///
/// The constructor, expose(), meet() and the destructor are collective: all processes call them, in
/// the same order. Copies are not collective, and may come from any thread. After fork() the object
/// belongs to the parent. The child's calls throw Error(misuse), and its destructors don't touch
/// the parent's job.
class JobMemory {
 public:
  /// Joins the processes of the job, and finds the paths between them. If a mechanism is refused
  /// here, it warns once, with a remedy.
  /// \throws Error(bad_environment, deadline, peer_lost)
  explicit JobMemory(JobMemoryOptions const& options = {});
  /// Returns when the copies of all processes have ended. In a process that unwinds an exception it
  /// does not wait for the others: their copies from and to this process fail.
  ~JobMemory();
  JobMemory(JobMemory const&) = delete;
  JobMemory& operator=(JobMemory const&) = delete;

  u32 process() const;
  u32 processes() const;

  /// Exposes `size` bytes at `memory` of this process, in any place. Other processes may give other
  /// sizes, or 0. `name` is for messages and must be the same everywhere. The memory must remain
  /// valid until the Exposed is released. Collective.
  /// \throws in all processes: Error(bad_argument) for null or freed memory, or more than its
  /// allocation holds; Error(misuse) if calls differ; Error(peer_lost)
  Exposed expose(void* memory, Bytes size, std::string const& name);

  /// Returns when all processes are here. `name` is for messages and must be the same everywhere.
  /// Other processes may have long work to do first. Unlike expose(), it does not warn if a process
  /// is late. Collective.
  /// \throws Error(misuse) if calls differ; Error(peer_lost)
  void meet(std::string const& name);

  /// Host memory that other processes of the node can map once it is exposed. They copy from and to
  /// it as fast as from and to their own. Zeroed. Not collective.
  /// \throws Error(out_of_memory)
  static Allocation allocate(Bytes size);
  /// The same for a device. A GPU's memory can always be shared.
  static Allocation allocate(Device& device, Bytes size);

  struct State;
  State& state() const { return *state_; }  // for the library

 private:
  std::shared_ptr<State> state_;
};

/// Copies target.size() bytes from `source`, in any place of this process, and returns when they
/// have arrived. Copies are not ordered. If one must follow another, begin it when the other is
/// done. A copy that fails may have written some of the bytes. Thread-safe.
/// \throws Error(bad_argument) for memory that was released, or that its owner has freed, and as
/// copy() between two places of this process. Error(peer_lost) if the owner is lost; for messages
/// over a network also if another process is lost and the network makes no progress. Error(misuse)
/// after the end of the JobMemory
void copy(RemoteBytes const& target, void const* source);
/// The same in the other direction: returns when source.size() bytes have arrived here.
void copy(void* target, RemoteBytes const& source);

/// The same, but return at once. This process's memory must not change until the copy is done. With
/// streams, an owner's release() also waits until this Copy is waited for or destroyed.
Copy copy_async(RemoteBytes const& target, void const* source, CopyOptions const& options = {});
Copy copy_async(void* target, RemoteBytes const& source, CopyOptions const& options = {});

/// The same for a block of rows. The range of the other process holds all its rows. Its bytes
/// between them do not change. \throws also Error(bad_argument) as copy_async() between two places
/// of this process, and for a block larger than the range
Copy copy_async(RemoteBytes const& target, Pitch target_pitch, void const* source,
                Pitch source_pitch, BlockShape shape, CopyOptions const& options = {});
Copy copy_async(void* target, Pitch target_pitch, RemoteBytes const& source, Pitch source_pitch,
                BlockShape shape, CopyOptions const& options = {});

/// One piece of a batch.
struct RemotePut {
  RemoteBytes target;
  void const* source = nullptr;
};
struct RemoteGet {
  void* target = nullptr;
  RemoteBytes source;
};
/// Copies a list, all at once. \throws also Error(bad_argument) naming two entries that write the
/// same bytes
Copy put_batch(std::span<RemotePut const> puts, CopyOptions const& options = {});
Copy get_batch(std::span<RemoteGet const> gets, CopyOptions const& options = {});

}  // namespace meshpost
