#pragma once
#include <chrono>
#include <functional>
#include <optional>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/device/block.hpp"
#include "meshpost/device/core_slice.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/device/memory_map.hpp"

// Functions that a kind of device provides to the parts above. To add a kind, implement them and
// register it.

namespace meshpost {

/// A kernel on a CPU: called once for each thread of each rank, on that thread's fiber.
using CpuEntry = void (*)(void const* kernel, void const* state, Block block, u32 local_rank,
                          void* scratch);

/// The arguments of a GPU's entry. (A CpuEntry takes everything by address.)
enum class Arguments {
  kernel_and_state,  ///< both by value
  state_address      ///< one pointer, to the state in its device's memory
};

/// A kernel as compiled: one entry for each machine that its translation unit was compiled for.
struct KernelImage {
  u32 abi = 0;  ///< abi_version of the translation unit
  std::string name;
  CpuEntry cpu = nullptr;
  void const* cuda = nullptr;  ///< __global__ function of `arguments`; null without nvcc
  Arguments arguments = Arguments::kernel_and_state;
  /// The same for all logical devices of a GPU in one launch. It takes the kernel by value and the
  /// address of the first device's state; blockIdx.y counts the devices. Null: there is none.
  void const* cuda_split = nullptr;
  /// Like cuda, for launches with LaunchSpec::by_warp. Null: there are none.
  void const* cuda_by_warp = nullptr;
  Bytes split_scratch{};  ///< shared memory that cuda_split takes behind the rank's scratch
  /// Threads of a rank on GPUs if the launch does not say; 0: the device's default.
  u32 gpu_threads = 0;
};

/// One device's part of a launch. Everything pointed to outlives the launch. The grids of a
/// physical device's logical devices follow each other. So do their states, in memory that the
/// device reads.
struct LaunchGrid {
  std::shared_ptr<Device> device;
  u32 ranks = 0;
  u32 first_rank = 0;             ///< world rank of the first
  void const* state = nullptr;    ///< passed as image.arguments says on GPUs, by address on CPUs
  RankReport* reports = nullptr;  ///< one for each rank
  Control* control = nullptr;
  /// CPU: to be filled while the launch runs. Null: nothing is recorded, which costs nothing.
  CoreRecord* record = nullptr;
  /// GPU: a word of the host's memory. It reaches `run` when the ranks of all grids have met at the
  /// end of their kernels, and their work is done. Null: the driver is asked.
  u32 const* ended = nullptr;
  u32 run = 0;
  /// GPU: the same when it begins; other launches may come before it. Null: it has begun.
  u32 const* begun = nullptr;
  /// For a graph: the number of its runs, of which `run` is the last. They find the number of the
  /// run before them at `base`, in the device's memory.
  u32 runs = 1;
  u32* base = nullptr;

  /// True if it has come so far, or to `before` runs before this one.
  bool is_over(u32 before = 0) const { return ended && has_come(ended, before); }
  bool has_begun() const { return !begun || has_come(begun, runs - 1); }

 private:
  bool has_come(u32 const* word, u32 before) const {
    return static_cast<i32>(memory::load_acquire(word) - (run - before)) >= 0;
  }
};

/// State that the launches of one World on devices of one kind share and keep: threads, stacks,
/// streams. Made by Backend::launch_resources(), outlives the launches that are made with it. One
/// launch has it at a time, from its start until it is destroyed. If launches are queued, several
/// launches have it, one behind the other.
class LaunchResources {
 public:
  virtual ~LaunchResources() = default;
  /// Returns when all work that was launched with it has ended, and all its stores are visible. For
  /// kinds that queue launches: a run counts as ended when its ranks have said so, a little before
  /// its kernels have. \throws Error if a device is broken
  virtual void quiesce() {}
};

/// Launches on the same grids, one behind the other, made once (Backend::make_graph). Outlives the
/// launches that are launched from it.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
};

/// A launch: all ranks of all grids are resident at once.
struct LaunchSpec {
  KernelImage image;
  void const* kernel = nullptr;
  Dim3 threads{0, 1, 1};  ///< of each rank; x = 0: the device's default
  Bytes scratch{};        ///< shared memory of each rank
  u32 workers = 0;        ///< CPU worker threads; 0: one for each core
  /// CPU: cores that are left to other threads if `workers` is 0; at most a quarter of all.
  u32 beside = 0;
  u32 neighbours = 1;    ///< processes that share the cores; this one counts
  u32 sharers = 1;       ///< processes that run such a launch on these devices at the same time
  bool by_warp = false;  ///< GPUs: ranks use Block::await_by_warp (image.cuda_by_warp)
  bool thread_a_rank = false;  ///< CPU: a new worker thread for each rank, for thread_local state
  bool shared = false;         ///< others take part, and may wake the ranks too
  /// CPU: work for a worker while none of its ranks can continue; returns true if it did something.
  /// Called by several workers at once. Empty: there is none.
  std::function<bool()> help{};
  /// CPU: called before a rank of a poisoned run, or one that poisons the run, frees what its
  /// kernel holds. After it nobody else reads or writes that memory. Called by several at once,
  /// also by each thread of a rank; never takes long. Empty: nobody else uses that memory.
  std::function<void()> withdraw{};
  /// CPU: true if something besides the awaited word has come for a rank that waits for a
  /// notification. Then await() returns early. Any thread asks. Null: nothing ever comes.
  bool (*has_news)(void const* state, u32 rank) = nullptr;
  std::vector<LaunchGrid> grids;
  std::vector<std::shared_ptr<Event>> after;  ///< it begins after these, if launches are queued
  LaunchGraph* graph = nullptr;               ///< launched in place of `image` and its settings
  LaunchResources* resources =
      nullptr;  ///< of the backend that launches. Null: the launch makes its own
};

/// Ranks that run. Destroyed only after finished().
class CooperativeLaunch {
 public:
  virtual ~CooperativeLaunch() = default;
  /// Returns after `timeout`, or earlier if the launch may have finished, deadlocked or failed.
  virtual void doze(std::chrono::microseconds timeout) = 0;
  virtual bool finished() = 0;
  /// One event for each physical device, if launches are queued.
  virtual std::vector<std::shared_ptr<Event>> ends() { return {}; }
  /// All unfinished ranks wait, and nothing can wake them. Only CPU devices know this here; for
  /// GPUs the host asks (Control::epoch).
  virtual bool deadlocked() { return false; }
  /// A value if no unfinished rank could continue when asked. If two calls return the same value,
  /// none continued in between. Nothing: some could, or it is not known here, but ranks answer the
  /// question.
  virtual std::optional<u64> quiet() { return std::nullopt; }
  /// True if ranks that wait answer the host's question (Control::epoch). Otherwise quiet() tells
  /// all.
  virtual bool answers() const { return true; }
  /// World ranks that have a thread on a core at this moment. Empty if that is not known.
  virtual std::vector<u32> running_ranks() const { return {}; }
  /// From here on the time counts that ranks get of a processor.
  virtual void count_time() {}
  /// True if ranks could have gone on, but their thread got less than `least` of a processor since
  /// count_time(), or nothing since then and the last call to see that they could. Only CPU devices
  /// know this.
  virtual bool starved(std::chrono::nanoseconds /*least*/) { return false; }
  /// A failure of the device itself, such as an illegal address.
  virtual std::optional<Error> failure() { return std::nullopt; }
};

/// Devices of a World that share a range of addresses.
struct SpaceDevices {
  std::vector<std::shared_ptr<Device>> own;  ///< of this process, which reach each other's memory
  std::vector<u32> numbers;                  ///< theirs in the world
  u32 count = 0;                             ///< devices of the world
  u32 spaces = 1;                            ///< number of such ranges that the process reserves
};

/// One range of addresses for all devices of a world: device d's memory begins at base() + d *
/// stride(), if it is in reach. It grows by mapping more, and never moves. Each process, and each
/// group of devices that reach each other, has a base() of its own.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  virtual char* base() const = 0;
  virtual Bytes stride() const = 0;
  virtual Bytes granularity() const = 0;
  /// Maps zeroed memory at [offset, offset + size) of every own device. \throws
  /// Error(out_of_memory)
  virtual void extend(Bytes offset, Bytes size) = 0;
  /// A file descriptor for the memory that extend() has just mapped there on `device`, an own one.
  /// It is for adopt() in another process, and belongs to the caller. \throws
  /// Error(bad_environment)
  virtual int share(u32 device, Bytes offset, Bytes size) = 0;
  /// Maps what share() gave another process for its `device`. `file` stays the caller's.
  /// \throws Error(bad_environment) with the reason and the setting to change. It is tried with a
  /// small piece when a World is made. If it throws there, those ranks reach each other through the
  /// host.
  virtual void adopt(u32 device, Bytes offset, Bytes size, int file) = 0;
  /// Undoes extend() and adopt() there for all devices, also if they failed half-way. Nothing is
  /// mapped there afterwards, and both may be called again. Memory before `offset` stays.
  virtual void shrink(Bytes offset, Bytes size) noexcept = 0;
};

/// The data that another process needs to map an allocation.
struct SharedMemory {
  u64 id = 0;  ///< the driver's number of the allocation, never given twice
  char const* begin = nullptr;
  u64 size = 0;
  std::string handle{};  ///< opaque, valid while the allocation is
  Descriptor file{};     ///< to pass along if the handle is not enough
};

/// Notes an entry of this program for GPUs (KernelImage::cuda and its like). Any thread, also
/// before main().
void note_gpu_entry(void const* entry);
/// The entries that were noted behind the first `known`.
std::vector<void const*> noted_gpu_entries(std::size_t known);

/// A kind of device. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view kind() const = 0;
  virtual DeviceTraits traits() const { return {}; }
  /// True if a program that names no devices gets this kind's, if there are any.
  virtual bool preferred() const { return false; }
  virtual u32 count() = 0;  ///< number of devices; ~0u for any number
  virtual std::string why_none() { return "there are none"; }
  virtual std::shared_ptr<Device> open(u32 index) = 0;
  virtual std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) = 0;
  /// For launches that follow each other. Null: this kind keeps nothing between them.
  virtual std::unique_ptr<LaunchResources> launch_resources() { return nullptr; }
  /// Loads the noted entries into the device, if the kind would otherwise load each when it is
  /// first launched, and wait for work that runs there.
  virtual void load_entries(Device& /*device*/) {}
  /// Throws what launch() would throw before anything runs. \throws Error(out_of_memory,
  /// bad_argument)
  virtual void fit(LaunchSpec const& /*spec*/) {}
  /// Throws before anything runs if not all ranks fit. \throws Error(out_of_memory) with the limits
  /// behind it
  virtual std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec) = 0;
  /// A graph of specs that differ in their images and kernels, and in their grids' states, which
  /// are copied. Only where queues_launches(). \throws as launch()
  virtual std::unique_ptr<LaunchGraph> make_graph(std::vector<LaunchSpec> const& /*steps*/) {
    return nullptr;
  }
  /// True if launches go into streams of the devices. They wait there for LaunchSpec::after, and
  /// CooperativeLaunch::ends() says when they end. Otherwise the host does both.
  virtual bool queues_launches() const { return false; }
  /// True if kernels on `from` load and store memory of `to`. Both are of this kind.
  virtual bool reaches(Device& /*from*/, Device& /*to*/) { return true; }
  /// Makes plain pointers of each device usable by the others. Called once. \throws
  /// Error(bad_environment)
  virtual void connect(std::vector<std::shared_ptr<Device>> const& devices) = 0;
  /// Memory that this kind's driver knows, no matter who allocated it. Nothing for plain host
  /// memory.
  virtual std::optional<MemoryRange> identify(void const* /*pointer*/) { return std::nullopt; }
  /// The driver's number of the allocation there, never given twice; 0 if it knows none. Much
  /// faster than identify.
  virtual u64 memory_id(void const* /*pointer*/) { return 0; }
  /// For adopt_memory() in another process: the allocation that `pointer` points into, in memory of
  /// this kind's devices. \throws Error(bad_environment) with the reason if it can't be shared
  virtual SharedMemory share_memory(void const* /*pointer*/) {
    throw Error(Kind::bad_environment, "share memory",
                std::string(kind()) + " devices don't share memory between processes",
                "let a thread of the owner copy");
  }
  /// Maps what share_memory() gave another process, for `device`, which is this process's. `file`
  /// stays the caller's; -1 if there is none. \throws Error(bad_environment) with the reason
  virtual void* adopt_memory(Device& /*device*/, std::string const& /*handle*/, int /*file*/,
                             Bytes /*size*/) {
    throw Error(Kind::bad_environment, "map another process's memory",
                std::string(kind()) + " devices don't share memory between processes",
                "let a thread of the owner copy");
  }
  /// Unmaps what adopt_memory() has returned.
  virtual void drop_memory(void* /*adopted*/) {}
  /// Nanoseconds to add to clock_ns() of `device` to get the host's steady clock.
  virtual i64 clock_offset(Device& /*device*/) { return 0; }
  /// True if kernels of several processes run on the device at the same time, rather than in turns.
  virtual bool runs_processes_at_once(Device& /*device*/) { return true; }
};

/// Adds a kind. \throws Error(bad_argument) if its name is taken.
void register_backend(std::unique_ptr<Backend> backend);

/// The kind of that name. \throws Error(bad_argument) naming the kinds that exist
Backend& backend(std::string_view kind);

/// The kind whose devices are the host's cores and memory. It is always there, and has any number
/// of devices.
Backend& host_backend();

/// The kind that a program gets if it names no devices: a preferred one that has some, else the
/// host's.
Backend& default_backend();

/// The traits of the kind of that name; the defaults if this process has no such kind.
DeviceTraits traits_of(std::string_view kind);

/// True on a thread that runs a rank of a CPU device: host calls are not allowed there.
bool inside_kernel();

}  // namespace meshpost
