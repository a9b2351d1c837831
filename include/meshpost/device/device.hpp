#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/types.hpp"
#include "meshpost/device/stream_operations.hpp"

// Devices, from the host's side. A kind of device is a Backend. cpu and cuda are built in; other
// kinds register.

namespace meshpost {

/// The memory that bytes are allocated in.
enum class MemoryKind {
  device,   ///< the device's own memory
  pinned,   ///< host memory that the device reads and writes in place
  pageable  ///< ordinary host memory
};

/// Memory that frees itself. Movable. Not to be destroyed while a kernel that uses it runs.
class Allocation {
 public:
  Allocation() = default;
  Allocation(void* data, Bytes size, std::function<void(void*)> release)
      : memory_(data, std::move(release)), size_(size) {}
  void* data() const { return memory_.get(); }
  Bytes size() const { return size_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }

 private:
  std::unique_ptr<void, std::function<void(void*)>> memory_{nullptr, [](void*) {}};
  Bytes size_{};
};

/// Rows of bytes from one pitched place to another: `rows` rows of `width` bytes in each of
/// `slices` slices. A pitch is the distance from the beginning of one to the next.
struct PitchedCopy {
  void* target = nullptr;
  u64 target_row = 0, target_slice = 0;  ///< pitches, bytes
  void const* source = nullptr;
  u64 source_row = 0, source_slice = 0;
  u64 width = 0, rows = 1, slices = 1;
};

/// Calls `work(target, source, width)` for each row.
template <class Work>
void for_each_row(PitchedCopy const& copy, Work&& work) {
  for (u64 slice = 0; slice < copy.slices; ++slice)
    for (u64 row = 0; row < copy.rows; ++row)
      work(
          static_cast<char*>(copy.target) + slice * copy.target_slice + row * copy.target_row,
          static_cast<char const*>(copy.source) + slice * copy.source_slice + row * copy.source_row,
          copy.width);
}

struct StreamChannel;
struct StreamReceive;
struct StreamPost;
struct StreamGather;
struct StreamScatter;
struct StreamExchangeWay;

/// A point in a stream's order. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() = 0;
  virtual void wait() = 0;
  /// Calls `action` once, when the event is done or at once if it already is. Any thread may call
  /// it.
  virtual void then(std::function<void()> action) = 0;
};

/// Work in order on one device. All calls except synchronize() return at once. One thread at a
/// time.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Copies `size` bytes between any two places that this device reaches. \throws
  /// Error(device_failed)
  virtual void copy(void* target, void const* source, Bytes size) = 0;
  /// The same for rows that don't overlap.
  virtual void copy(PitchedCopy const& rows) = 0;
  /// Sets `size` bytes to `value`.
  virtual void fill(void* target, u8 value, Bytes size) = 0;
  /// Calls `work` on a thread of the library, which must not call into this device. An exception
  /// that leaves `work` ends the process.
  virtual void call(std::function<void()> work) = 0;
  /// Stores a word of the host's pinned memory. A thread that sees it also sees the effects of
  /// earlier work of the stream.
  virtual void store(u32* word, u32 value) = 0;
  /// Later work of this stream begins when a word of the host's pinned memory, a count that wraps,
  /// has come to `value`. It sees what was stored before.
  virtual void await_word(u32 const* word, u32 value);
  virtual std::shared_ptr<Event> record() = 0;
  /// Later work of this stream starts after `event`, which may be another device's or kind's.
  virtual void wait(std::shared_ptr<Event> event) = 0;
  /// Returns when all work so far is done. \throws Error(device_failed)
  void synchronize(std::source_location where = std::source_location::current());
  /// The cudaStream_t, null on CPU devices.
  virtual void* native() = 0;
  /// A thread of the host does this stream's work.
  virtual bool on_host() const { return false; }
  /// Its work is being recorded for a graph.
  virtual bool captures() { return false; }
  /// Stores the device's clock, in ns, in a word of pinned memory. Backend::clock_offset() leads to
  /// the host's clock.
  virtual void stamp(u64* word);

  // Operations on counters, for the part on_stream (device/stream_operations.hpp). If the stream
  // was poisoned, they do nothing. Memory that they name outlives them. \throws
  // Error(device_failed)

  /// Copies, then raises the counter. A thread that acquires the count sees the bytes, and all that
  /// earlier work of the stream has stored.
  virtual void put(StreamWords const& words, StreamPut const& put);
  /// Later work of this stream starts when all these counts have come, which are then consumed.
  /// It sees what was stored before they were raised.
  virtual void await(StreamWords const& words, std::span<AwaitedCounter const> counters);
  /// Puts the bytes into the ring, in messages. It waits there while the ring is full and, if
  /// `until_taken`, until the host has carried them out. Only if the work is not done by a thread
  /// of the host.
  virtual void post(StreamWords const& words, StreamRing const& ring, u32 operation,
                    StreamPut const& put, bool until_taken);
  /// Sends a message: the bytes of `put`. It waits while the channel is full. `far`: null unless
  /// the receiver is out of reach. Only if the work is not done by a thread of the host, then.
  virtual void send(StreamWords const& words, StreamChannel const& to, StreamPut const& put,
                    StreamPost const* far);
  /// Takes the next message, which must fit. `far`: likewise, for the sender.
  virtual void receive(StreamWords const& words, StreamChannel const& from,
                       StreamReceive const& into, StreamPost const* far);
  /// Copies elements to where others need them, and tells these (device/stream_exchange.hpp). It
  /// waits for permissions, if there are some to wait for.
  virtual void gather(StreamWords const& words, StreamGather const& gather);
  /// Waits for the elements of a step, and takes them to their places.
  virtual void scatter(StreamWords const& words, StreamScatter const& scatter);
  /// How it would carry out a put, a gather or a scatter.
  virtual StreamWay way_of(StreamPut const& put) const;
  virtual StreamExchangeWay way_of(StreamGather const& gather) const;
  virtual StreamExchangeWay way_of(StreamScatter const& scatter) const;

 protected:
  virtual void do_synchronize() = 0;
};

/// Properties of a device, for tables and for choosing the number of ranks.
struct DeviceInfo {
  std::string model;
  Bytes memory{};
  u32 processors = 0;  ///< multiprocessors, or cores
  u32 default_ranks = 0;
  u32 default_threads = 0;    ///< threads of a rank if the program does not say
  u32 max_threads = 0;        ///< largest number of threads of a rank
  std::string bus{};          ///< PCI address, "0000:1b:00.0"; empty for devices on no bus
  std::string uuid{};         ///< "GPU-..." as nvidia-smi shows it; empty for CPU devices
  std::optional<bool> ecc{};  ///< its memory corrects errors; nothing: not known
};

/// The memory that a pointer points to.
struct PointerInfo {
  MemoryKind kind = MemoryKind::pageable;
  bool usable = false;   ///< a kernel on the device that was asked may dereference it
  u64 extent = ~u64{0};  ///< bytes from the pointer to the end of its allocation, if known
};

/// Places that a rank can poll while it waits for a notification, besides the counter.
enum class ExtraPolls : u8 {
  none,
  has_news,  ///< the host's threads that run the ranks call LaunchSpec::has_news
  by_warp    ///< a warp polls 32 places at once (Block::await_by_warp)
};

/// Properties of a kind of device that other parts need. Processes exchange them, since a process
/// may not have another one's kind. The defaults are correct for every kind, but may be slow.
struct DeviceTraits {
  /// Its memory is the host's: threads of all processes of the host read and write it in place.
  bool in_host_memory = false;
  /// Its ranks run on the host's cores, which all such devices share. The system schedules runs of
  /// several Worlds there, so no run keeps another one from its cores.
  bool on_host_cores = false;
  ExtraPolls extra_polls = ExtraPolls::none;
};

/// Something with its own memory that runs kernels. Thread-safe.
///
/// A physical device may be split into logical ones. Each is a device of a World, with a number,
/// ranks and a part of the symmetric heap of its own. They share the physical device's memory,
/// streams, processors and places of the fabric.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const = 0;  ///< "cpu", "cuda"
  virtual u32 index() const = 0;              ///< of the physical device
  /// "cuda:0"; "cuda:0.2" of a logical device, which counts from 0.
  virtual std::string name() const { return std::string(kind()) + ":" + std::to_string(index()); }
  /// The physical device that this logical one is a part of; null: it is a physical one itself.
  virtual std::shared_ptr<Device> whole() const { return nullptr; }
  virtual DeviceInfo const& info() const = 0;
  /// Its memory is the host's: threads of the host read and write it in place.
  virtual bool in_host_memory() const { return false; }
  /// \throws Error(out_of_memory) naming the device, the size and what is free
  virtual Allocation allocate(Bytes size, MemoryKind kind) = 0;
  /// Bytes of its memory that are free now. All together that allocate() can give is at most that.
  /// On CPU devices other programs count too. \throws Error(device_failed)
  virtual Bytes free_memory() = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// The same. Its kernels are the first to get places of a GPU that become free, before those of
  /// streams by make_stream().
  virtual std::unique_ptr<Stream> make_urgent_stream() { return make_stream(); }
  /// A stream around one of the user's own (cudaStream_t); CPU devices have none.
  virtual std::unique_ptr<Stream> adopt_stream(void* native) = 0;
  virtual PointerInfo locate(void const* pointer) = 0;
  /// Copies from this device's memory to the host's, and returns when that is done.
  void read(void* host, void const* device, Bytes size,
            std::source_location where = std::source_location::current());
  /// Copies from the host's memory to this device's, and returns when that is done.
  void write(void* device, void const* host, Bytes size,
             std::source_location where = std::source_location::current());
  /// Sets this device's memory, and returns when that is done.
  void fill(void* target, u8 value, Bytes size,
            std::source_location where = std::source_location::current());
  /// Adds to a counter in this device's memory, and notes its origin unless that word is null.
  /// Returns when that is done. Kinds whose kernels or streams may add at the same time override
  /// it.
  virtual void raise(u32* counter, u32 value, u32* origin_word, u32 origin);
  /// Network cards have written into this device's memory, and have said so. After this call its
  /// kernels see those bytes, once they have acquired something that the host releases after the
  /// call.
  virtual void see_writes() {}

 protected:
  virtual void do_read(void* host, void const* device, Bytes size) = 0;
  virtual void do_write(void* device, void const* host, Bytes size) = 0;
  virtual void do_fill(void* target, u8 value, Bytes size) = 0;
};

/// The devices that MESHPOST_DEVICES or `spec` name. "cpu:4" is four CPU devices, "cuda:0,2" those
/// GPUs, "cuda" all of them. "" is all GPUs or, without any, two CPU devices. "*N" at the end
/// splits each of them into N logical devices: "cuda:0*4", "cuda*2", "cpu:1*9". Several kinds stand
/// one behind the other: "cuda:0,1,cpu:2".
/// \throws Error(bad_argument) naming what exists. Thread-safe.
std::vector<std::shared_ptr<Device>> open_devices(std::string const& spec);

/// The physical device: `device` itself, or the one that it is a part of.
std::shared_ptr<Device> physical(std::shared_ptr<Device> const& device);

/// The physical devices of `devices`, each once, in their order.
std::vector<std::shared_ptr<Device>> physical_devices(
    std::vector<std::shared_ptr<Device>> const& devices);

/// True if kernels on `from` load and store memory of `to`: both are of one kind, which can.
bool reaches(std::shared_ptr<Device> const& from, std::shared_ptr<Device> const& to);

/// Throws Error(misuse) in a process forked after the library opened its first device.
void refuse_after_fork(std::string_view operation);

}  // namespace meshpost
