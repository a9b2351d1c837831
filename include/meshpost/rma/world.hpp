#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "meshpost/base/config.hpp"
#include "meshpost/rma/graph.hpp"
#include "meshpost/rma/kernel.hpp"
#include "meshpost/rma/run.hpp"
#include "meshpost/rma/window.hpp"

namespace meshpost {

class Processes;

/// The settings of a World. Every field's default comes from the environment (base/config.hpp).
struct WorldOptions {
  std::string devices = Config::from_environment().devices;  ///< see open_devices()
  u32 ranks = Config::from_environment().ranks;              ///< of each device, 0: its default
  u32 workers = Config::from_environment().workers;          ///< CPU worker threads, 0: one a core
  std::chrono::milliseconds deadline = Config::from_environment().deadline;
  bool check_delivery = Config::from_environment().check_delivery;  ///< CPU devices only
  /// Ranks of different devices reach each other by the host's proxy alone. Ranks of devices that
  /// can't load and store each other's memory always do.
  bool apart = Config::from_environment().apart;
  /// Lanes of each rank for short messages (rma/lanes.hpp), on GPUs at most 32; 0: all go direct.
  /// Unset: as many as possible on GPUs that reach each other, none on CPU devices. Not with
  /// check_delivery. If a run's ranks don't fit into a GPU with lanes, the run goes without, with a
  /// warning.
  std::optional<u32> lanes = Config::from_environment().lanes;
  /// Approximate upper limit of the memory for collectives on each device. The world's communicator
  /// takes as much; the devices' and each split take a quarter of it. With more memory, long
  /// vectors go in fewer steps. Equal in all processes.
  Bytes collectives{u64{32} << 20};
  /// File for the timelines of runs that name none, as Perfetto JSON. It holds the last run's. A
  /// thread writes it after the runs, which cost little more than without. The file may be some 0.1
  /// s late, and later for a large timeline. It is complete when the World is destroyed, or the
  /// process ends by exit(). After a run that failed, it is complete when wait() throws.
  std::string trace = Config::from_environment().trace;
  u32 trace_events = Config::from_environment().trace_events;  ///< kept for each rank
  /// File for the timeline of the host and of streams, as Perfetto JSON: calls of the host, runs as
  /// a whole, and the operations of StreamEndpoints with the user's tasks. It is written when the
  /// World is destroyed. Calls of other Worlds, and of devices, are on it too. A stream of a GPU
  /// stores its clock before and after each operation, by a small kernel.
  std::string trace_host = Config::from_environment().trace_host;
  /// Report, when the World is destroyed, where a thread of the host waited between operations that
  /// it queued on devices: a warning for each place (trace/sync_report.hpp).
  bool report_sync = Config::from_environment().report_sync;
  std::string net = Config::from_environment().net;  ///< engine between nodes
  bool alone = false;  ///< only this process's devices, though its job has more processes
  /// The processes of a job other than the launcher's; options_over() (rma/mpi.hpp) sets them.
  std::shared_ptr<Processes> processes = {};
};

/// Where a rank's part lies in its device's block of a window, in elements. Parts may overlap.
struct Extent {
  u64 offset = 0;
  u64 count = 0;
};

/// All ranks on all devices of this process. If a launcher started several processes (meshpost-run,
/// Open MPI's mpirun, MPICH's mpiexec, Slurm's srun), all ranks of the job. Windows, communicators
/// and runs belong to it.
///
/// Thread-safe: every call may come from any thread. No call may come from inside a kernel or after
/// fork(). Several Worlds may share devices: on GPUs their runs
/// take turns, in the order in which they are launched.
///
/// Collective in a job of several processes: the constructor, window(), register_memory(), free(),
/// split(), launch() and run(). While there are windows over memory of users, or ranks out of reach
/// of each other, so is the destructor. All processes make these calls in the same order, with the
/// same arguments (except for the memory of users). If one differs, all get Error(misuse). After a
/// process is lost, all get Error(peer_lost). No rank begins a run before all processes have
/// launched it. A World can be neither copied nor moved.
class World {
 public:
  /// \throws Error(bad_argument, bad_environment, out_of_memory)
  explicit World(WorldOptions const& options = {});
  /// Waits for its runs.
  ~World();
  World(World const&) = delete;
  World& operator=(World const&) = delete;

  u32 process() const;       ///< number of this one
  u32 processes() const;     ///< that the World spans
  u32 size() const;          ///< ranks
  u32 device_count() const;  ///< of all processes
  u32 ranks_per_device() const;
  /// The first of this process's ranks; they are devices().size() * ranks_per_device(), in the
  /// order of the devices.
  u32 first_rank() const;
  std::vector<std::shared_ptr<Device>> const& devices() const;  ///< of this process

  /// The host of a process, for kernels that notify it (Rank::notify). It needs a device.
  /// \throws Error(bad_argument)
  HostId host(u32 process) const;
  HostId host() const { return host(process()); }  ///< of this one

  Communicator communicator() const;         ///< all ranks
  Communicator device_communicator() const;  ///< for each rank, those on its device
  /// Ranks of `parent` with equal color form a group, in the order of their world ranks. Ranks with
  /// a negative color are in none.
  Communicator split(Communicator const& parent, std::function<i64(RankId world_rank)> const& color,
                     std::source_location where = std::source_location::current());

  /// `count` elements at every rank, zeroed, and `tags` counters. `name` is for messages.
  /// \throws Error(out_of_memory, bad_argument)
  template <class T>
  Window<T> window(u64 count, Tags tags = Tags{16}, std::string name = {},
                   std::source_location where = std::source_location::current()) {
    return window<T>(communicator(), count, tags, std::move(name), where);
  }
  /// Over another communicator of this world: at(rank) then takes the rank's number in the group.
  template <class T>
  Window<T> window(Communicator const& communicator, u64 count, Tags tags = Tags{16},
                   std::string name = {},
                   std::source_location where = std::source_location::current()) {
    return Window<T>(
        make_window({communicator, element<T>(), count, {}, {}, tags, std::move(name)}, where));
  }
  /// A part for each world rank. Parts of one device lie in one block and may overlap: a put whose
  /// source and target are the same copies nothing.
  template <class T>
  Window<T> window(std::vector<Extent> const& parts, Tags tags = Tags{16}, std::string name = {},
                   std::source_location where = std::source_location::current()) {
    return Window<T>(
        make_window({communicator(), element<T>(), 0, parts, {}, tags, std::move(name)}, where));
  }
  /// Memory of the user: a span for each world rank, in the memory of that rank's device
  /// (cudaMalloc, a tensor; any memory on CPU devices). If this process is alone, also pinned
  /// memory of the host. Spans may overlap. The memory must live until free() or the World's end.
  /// In a job each process names the parts of its own ranks, and leaves the others' empty. If other
  /// processes of the node reach them by loads and stores, memory of CPU devices must come from
  /// allocate(). Parts out of reach are written by way of the host. For a GPU's that is so even if
  /// the network reaches windows. \throws Error(bad_argument, out_of_memory, bad_environment)
  template <class T>
  Window<T> register_memory(std::vector<std::span<T>> const& parts, Tags tags = Tags{16},
                            std::string name = {},
                            std::source_location where = std::source_location::current()) {
    std::vector<Part> memory;
    for (auto const& part : parts) memory.push_back({part.data(), part.size()});
    return Window<T>(make_window(
        {communicator(), element<T>(), 0, {}, std::move(memory), tags, std::move(name)}, where));
  }
  /// Memory of a device of this process that register_memory() takes in every job. A GPU's is like
  /// cudaMalloc's; a CPU device's is zeroed. Not collective. \throws Error(out_of_memory)
  static Allocation allocate(Device& device, Bytes size);
  /// Ends a window. Its memory is used again after the runs launched so far. When it returns,
  /// memory that the user registered may be freed, in every process. It waits for the work of all
  /// streams of the World, which may use any window (StreamEndpoint): so it does not return before
  /// what they wait for has come. \throws Error(bad_argument)
  template <class T>
  void free(Window<T> const& window, std::source_location where = std::source_location::current()) {
    free_window(window.info(), where);
  }

  /// Starts `kernel` on all ranks after the runs launched before, and returns. A kernel class may
  /// have these constants, which apply to GPUs only. `static constexpr int max_threads`: the most
  /// threads that a rank will have, so that the compiler may give each as many registers as then
  /// fit. `gpu_threads`: the threads of a rank if Launch::threads does not set them. `static
  /// constexpr bool uses_lanes = false`: it sends no messages of up to 1152 bytes between GPUs, so
  /// its waits need not look for them (docs/protocols.md).
  /// \throws Error(misuse, version_mismatch); Run::wait throws later errors
  template <class Kernel, bool nvcc = detail::by_nvcc>
  Run launch(Kernel const& kernel, Launch const& launch = {},
             std::source_location where = std::source_location::current()) {
    return start(detail::image_of<Kernel, nvcc>(), &kernel, sizeof kernel, launch, false, where);
  }
  /// launch(), and waits. \throws what either throws
  template <class Kernel, bool nvcc = detail::by_nvcc>
  RunResult run(Kernel const& kernel, Launch const& launch = {},
                std::source_location where = std::source_location::current()) {
    return start(detail::image_of<Kernel, nvcc>(), &kernel, sizeof kernel, launch, true, where)
        .wait(where);
  }

  /// Starts all runs of `graph`, one after the other, after the runs launched before. Of `launch`
  /// it takes streams, deadline, trace and with_host, for all runs. The result of Run::wait() is
  /// for all runs: seconds is their sum, and unconsumed notifications and timings follow each
  /// other. The first run that fails ends those behind it, and Run::wait() throws its error.
  /// \throws Error(bad_argument) for an empty graph, or if a field of Graph::add is set; as
  /// launch()
  Run launch(Graph const& graph, Launch const& launch = {},
             std::source_location where = std::source_location::current());
  /// launch(), and waits. \throws what either throws
  RunResult run(Graph const& graph, Launch const& launch = {},
                std::source_location where = std::source_location::current());

  /// For kernels compiled elsewhere (at run time, say). `kernel` is copied. `awaited`: the caller
  /// waits at once, so no other thread needs to supervise the run.
  Run start(KernelImage const& image, void const* kernel, std::size_t bytes, Launch const& launch,
            bool awaited = false, std::source_location where = std::source_location::current());

  struct WindowSpec {
    Communicator communicator;
    u64 element_bytes;
    u64 count;  ///< uniform, unless one of the next two is given
    std::vector<Extent> extents;
    std::vector<Part> memory;
    Tags tags;
    std::string name;
  };

 private:
  template <class T>
  static constexpr u64 element() {
    static_assert(std::is_trivially_copyable_v<T>, "windows hold bytes that may be copied");
    return sizeof(T);
  }
  WindowInfo make_window(WindowSpec const& spec, std::source_location where);
  void free_window(WindowInfo const& info, std::source_location where);

  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

namespace detail {
/// Host side of Window::read (target) and write (source).
void transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void* target,
              void const* source, u64 count, std::source_location where);
/// Host side of Window::part.
Part own_part(WindowInfo const& window, RankId rank);
/// Elements of a rank's part.
u64 part_count(WindowInfo const& window, RankId rank);
/// Host side of Window::put_notify (`source`, which may be null: of nothing) and notify.
void raise(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void const* source,
           u64 count, Tag tag, std::source_location where);
/// The same for a stream.
void raise(WindowInfo const& window, StreamId stream, Tag tag, std::source_location where);
/// Host side of Window::wait.
void wait_on_host(WindowInfo const& window, Tag tag, u32 count,
                  std::optional<std::chrono::milliseconds> deadline, std::source_location where);
}  // namespace detail

template <class T>
void Window<T>::write(RankId rank, u64 offset, std::span<T const> source,
                      std::source_location where) const {
  detail::transfer(info_, sizeof(T), rank, offset, nullptr, source.data(), source.size(), where);
}
template <class T>
void Window<T>::read(RankId rank, u64 offset, std::span<T> target,
                     std::source_location where) const {
  detail::transfer(info_, sizeof(T), rank, offset, target.data(), nullptr, target.size(), where);
}
template <class T>
std::span<T> Window<T>::part(RankId rank) const {
  auto const own = detail::own_part(info_, rank);
  return {static_cast<T*>(own.data), own.count};
}
template <class T>
void Window<T>::put_notify(RankId rank, u64 offset, std::span<T const> source, Tag tag,
                           std::source_location where) const {
  detail::raise(info_, sizeof(T), rank, offset, source.data(), source.size(), tag, where);
}
template <class T>
void Window<T>::notify(RankId rank, Tag tag, std::source_location where) const {
  detail::raise(info_, sizeof(T), rank, 0, nullptr, 0, tag, where);
}
template <class T>
void Window<T>::notify(StreamId stream, Tag tag, std::source_location where) const {
  detail::raise(info_, stream, tag, where);
}
template <class T>
void Window<T>::wait(Tag tag, u32 count, std::optional<std::chrono::milliseconds> deadline,
                     std::source_location where) const {
  detail::wait_on_host(info_, tag, count, deadline, where);
}
template <class T>
std::vector<T> Window<T>::read(RankId rank, std::source_location where) const {
  std::vector<T> all(detail::part_count(info_, rank));
  read(rank, 0, all, where);
  return all;
}

}  // namespace meshpost
