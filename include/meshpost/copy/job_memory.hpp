#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshpost/copy/copy.hpp"

// Copies between the processes of a job. One-sided: the process whose memory it is makes no call.

namespace meshpost {

/// How bytes get to or from exposed memory.
enum class CopyPath : u8 {
  own,      ///< it is this process's: a copy like any other
  mapped,   ///< another process's, mapped here once: a copy like any other
  kernel,   ///< the operating system reads and writes the other process's memory
  staged,   ///< a thread of its owner, through memory that both share
  network,  ///< a thread of its owner, through a network engine
};
std::string_view to_string(CopyPath path);

/// What is known of one process's part of exposed memory.
struct ExposedPart {
  Bytes size{};
  MemoryKind memory = MemoryKind::pageable;
  std::string device{};    ///< whose memory it is, as its process names it; empty: plain memory
  bool same_node = false;  ///< in reach of this process's loads and stores
  CopyPath path = CopyPath::own;
  std::string why{};  ///< no faster path is taken, and what to change; empty: it is the fastest
};

/// A range of exposed memory. Copyable; may outlive everything else: copies then throw.
class RemoteBytes {
 public:
  u32 process() const { return process_; }
  Bytes size() const { return size_; }

  struct Exposure;  // of the library

 private:
  friend class Exposed;
  friend class RemoteCopy;
  RemoteBytes(std::shared_ptr<Exposure const> exposure, u32 process, u64 offset, Bytes size)
      : exposure_(std::move(exposure)), process_(process), offset_(offset), size_(size) {}
  std::shared_ptr<Exposure const> exposure_;
  u32 process_;
  u64 offset_;
  Bytes size_;
};

/// Memory that every process of a job has exposed a part of. Movable. When it is destroyed, this
/// process's part is released: that returns when no copy touches it any more, and from then on
/// copies from and to it throw, in every process. The other processes' parts stay.
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
  /// `size` bytes from `offset` bytes on of a process's part. \throws Error(bad_argument) for a
  /// range outside of it
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
  /// No faster path is taken to other processes' memory, to compare: mapped, kernel or staged.
  CopyPath fastest = CopyPath::mapped;
};

/// The processes of a job as each other's memory: each exposes memory, all copy from and to it.
/// Also of one process alone.
///
/// The constructor, expose(), meet() and the destructor are collective: all processes call them, in
/// the same order. Copies are not, and may come from any thread. After fork() all of it is the
/// parent's: the child's calls throw Error(misuse), and its destructors leave the parent's job
/// alone.
class JobMemory {
 public:
  /// Joins the processes of the job, and finds out which paths there are between them. Warns once
  /// where a mechanism is refused here, with what to change.
  /// \throws Error(bad_environment, deadline, peer_lost)
  explicit JobMemory(JobMemoryOptions const& options = {});
  /// Returns when the copies of all processes are over.
  ~JobMemory();
  JobMemory(JobMemory const&) = delete;
  JobMemory& operator=(JobMemory const&) = delete;

  u32 process() const;
  u32 processes() const;

  /// Exposes `size` bytes at `memory` of this process, in any place; other processes bring other
  /// sizes, or none. `name` is for messages and must be the same everywhere. The memory must stay
  /// until the Exposed is released. Collective.
  /// \throws in all processes: Error(bad_argument) for null or freed memory, or more than its
  /// allocation holds; Error(misuse) where calls differ; Error(peer_lost)
  Exposed expose(void* memory, Bytes size, std::string const& name);

  /// Returns when all processes are here. `name` is for messages and must be the same everywhere.
  /// Others may have long work to do first: unlike in expose(), nobody is warned of a process that
  /// takes long to come. Collective.
  /// \throws Error(misuse) where calls differ; Error(peer_lost)
  void meet(std::string const& name);

  /// Host memory that other processes of the node can map once it is exposed: they copy from and
  /// to it as fast as from and to their own. Zeroed. Not collective.
  /// \throws Error(out_of_memory)
  static Allocation allocate(Bytes size);
  /// The same of a device; a GPU's memory can always be shared.
  static Allocation allocate(Device& device, Bytes size);

  struct State;
  State& state() const { return *state_; }  // for the library

 private:
  std::shared_ptr<State> state_;
};

/// Copies target.size() bytes from `source`, in any place of this process, and returns when they
/// are there. Copies have no order among each other: one that must come after another begins when
/// that is done. A copy that fails may have written some of the bytes. Thread-safe.
/// \throws Error(bad_argument) for memory that was released, or that its owner has freed, and as
/// copy() of two places of this process; Error(peer_lost) if the owner is lost, and by messages
/// over a network also if another process is and the network does not get on; Error(misuse) when
/// the JobMemory is gone
void copy(RemoteBytes const& target, void const* source);
/// The same the other way: returns when source.size() bytes are here.
void copy(void* target, RemoteBytes const& source);

/// The same, but return at once; memory of this process must stay as it is until the copy is done.
/// With streams, an owner's release() also waits until this Copy is waited for or destroyed.
Copy copy_async(RemoteBytes const& target, void const* source, CopyOptions const& options = {});
Copy copy_async(void* target, RemoteBytes const& source, CopyOptions const& options = {});

/// The same of a block of rows. The range of the other process holds all its rows; its bytes
/// between them stay as they are. \throws also Error(bad_argument) as copy_async() of two places of
/// this process, and for a block larger than the range
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
/// Copies a list, all at once. \throws also Error(bad_argument) naming two that write the same
/// bytes
Copy put_batch(std::span<RemotePut const> puts, CopyOptions const& options = {});
Copy get_batch(std::span<RemoteGet const> gets, CopyOptions const& options = {});

}  // namespace meshpost
