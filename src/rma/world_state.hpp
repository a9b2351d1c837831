#pragma once
// What a World owns. The files of src/rma share it; nobody else sees it.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "meshpost/rma/world.hpp"
#include "meshpost/world/heap.hpp"
#include "meshpost/world/split.hpp"
#include "rma/runs/ending/timeline.hpp"
#include "rma/runs/launching/agreement.hpp"
#include "rma/runs/launching/device_locks.hpp"
#include "rma/runs/launching/graph.hpp"
#include "rma/via/lane/keeper.hpp"
#include "rma/via/proxy/proxy.hpp"
#include "rma/windows/freed_windows.hpp"
#include "rma/windows/host_endpoint.hpp"
#include "rma/windows/places.hpp"
#include "world/imports.hpp"
#include "world/peers.hpp"

namespace meshpost::detail {

class RunSupervisor;
class WorldState;
struct KeepIfItHangs {
  void operator()(RunSupervisor* run) const;
};

/// A launch on its way: waits in the world's queue, runs, then holds the outcome.
struct RunRecord {
  KernelImage image;
  std::vector<std::max_align_t> kernel;  // a copy of the kernel object
  Launch launch;
  std::vector<std::shared_ptr<Event>> before;  // of Launch::streams
  // Null: a single run. Else its runs are launched one by one, or all together as the devices have
  // them.
  std::shared_ptr<GraphRecord> graph;
  bool one_by_one = false;
  u32 step = 0;  // of the graph: whose kernel the above is

  WorldState* world = nullptr;                          // until it is done
  std::unique_ptr<RunSupervisor, KeepIfItHangs> run{};  // once it has begun; of who drives it

  std::mutex mutex;
  std::condition_variable changed;
  bool in_queue = false;                       // guarded by its World's mutex
  bool has_turn = false;                       // it is the first in the queue
  bool driven = false;                         // a thread sees to it (runs/launching/queue.cpp)
  std::atomic<bool> others_may_queue = false;  // behind it, for it has begun so
  bool launched = false;                       // or failed to be
  std::vector<std::shared_ptr<Event>> ends;    // of its kernels, if Backend::queues_launches
  bool ended = false;  // the kernels have: streams go on, while the host still reads what they left
  std::vector<std::function<void()>> at_end;  // what streams that wait for the run have left
  bool done = false;
  bool observed = false;  // somebody has waited
  RunResult result;
  std::optional<Error>
      error;  // a value: an exception that threads share would be counted by them all

  std::string name() const;  // for messages
  /// The kernel of that run of the graph, and how it is launched.
  void take_step(u32 number);
  bool has_more_steps() const;
  void launch_is_done(std::vector<std::shared_ptr<Event>> of_kernels);
  void end();  // idempotent
  bool try_to_drive();
};

/// One device's memory for runs, used by one run after the other.
struct DeviceRunMemory {
  Allocation reports, control, log_records, log_tail, log_head, timers;
  Allocation state;  // for kernels that take its address
  Allocation news;   // RunNews
  Allocation base;   // RunState::base

  /// Ranks have said nothing yet.
  void expect_ranks();
  /// All that a run which ends well leaves clear by itself.
  void clear(Device& owner);
};

/// While it lives, the memory map knows memory that the user has registered.
class Registered {
 public:
  explicit Registered(MemoryRange range) : range_(range) { memory_map().add(range_); }
  ~Registered() { memory_map().forget(range_.begin, range_.size); }
  Registered(Registered const&) = delete;
  Registered& operator=(Registered const&) = delete;

 private:
  MemoryRange range_;
};

/// Memory of users that a window lies over, as this process has it.
struct UserMemory {
  explicit UserMemory(Places& of_world) : places(of_world), numbers(places.take_numbers()) {}
  ~UserMemory() { places.give_numbers(numbers); }
  UserMemory(UserMemory const&) = delete;
  UserMemory& operator=(UserMemory const&) = delete;

  /// What is other processes'.
  void unmap() {
    mapped.clear();
    imports.emplace();
  }

  Places& places;
  u64 const numbers;  // the first of its numbers there
  std::vector<std::unique_ptr<Registered>> registered;
  std::optional<Imports> imports{std::in_place};
  // What is mapped of other processes', by physical device (null: for the host) and world rank.
  std::map<std::pair<Device*, u32>, char*> mapped;
};

struct WindowRecord {
  struct Part {
    u64 count = 0;
    Place place;
  };
  WindowInfo info;
  std::string name;
  u64 element_bytes = 0;
  std::vector<Part> parts;  // by world rank; empty: uniform
  u64 data_bytes = 0;       // heap bytes to give back, at info.offset
  u64 counter_bytes = 0;
  u64 host_bytes = 0;  // likewise, at info.host_counters
  std::shared_ptr<HostCounters> host;
  std::unique_ptr<UserMemory> users;  // null: it lies in the heap
};

/// While it lives, other processes' questions are answered.
class Answering {
 public:
  Answering(Peers const& peers, Processes::Answer answer) : peers_(peers) {
    peers_.processes().answer(peers_.channel(), std::move(answer));
  }
  ~Answering() { peers_.processes().answer(peers_.channel(), nullptr); }
  Answering(Answering const&) = delete;
  Answering& operator=(Answering const&) = delete;

 private:
  Peers const& peers_;
};

class WorldState {
 public:
  explicit WorldState(WorldOptions options);
  ~WorldState() = default;
  WorldState(WorldState const&) = delete;
  WorldState& operator=(WorldState const&) = delete;

  /// Ends `state` when all its runs are over; but keeps it for ever if a thread hangs in its
  /// engine.
  static void end(WorldState* state);

  WindowInfo make_window(World::WindowSpec const& spec);
  void free_window(WindowInfo const& info);
  Communicator split(Communicator const& parent, std::function<i64(RankId)> const& color);
  Communicator const& world_communicator() const { return world_communicator_; }
  Communicator const& device_communicator() const { return device_communicator_; }

  std::shared_ptr<RunRecord> start(KernelImage const& image, void const* kernel, std::size_t bytes,
                                   Launch const& launch, bool awaited);
  std::shared_ptr<RunRecord> start(std::shared_ptr<GraphRecord> const& graph, Launch const& launch,
                                   bool awaited);
  /// For who drives a run: begins it, if nobody has to be waited for. What comes of it stays in the
  /// record.
  bool begin_at_once(std::shared_ptr<RunRecord> const& record);
  std::shared_ptr<RunRecord> leave_queue();
  /// Drives runs, or waits for who does, until `record` is done.
  void help(std::shared_ptr<RunRecord> const& record);
  /// While pinned, a World does not end. For who holds the mutex of a record that has it.
  void pin() { ++pins_; }
  void unpin();
  void let_go(RunRecord& record);
  void wake_supervisor(bool urgent);
  DeviceLocks& locks() { return locks_; }
  Agreement& agreement() { return agreement_; }
  void transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset, void* target,
                void const* source, u64 count);
  u64 part_count(WindowInfo const& window, RankId rank);
  // The host as an endpoint (windows/host_windows.cpp):
  HostId host(u32 process) const;
  void raise(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
             void const* source, u64 count, Tag tag);
  void wait_on_host(WindowInfo const& window, Tag tag, u32 count,
                    std::optional<std::chrono::milliseconds> deadline);
  HostEndpoint& endpoint() { return endpoint_; }
  std::string sender_name(u32 sender) const;  ///< "rank 3", "the host"
  /// Why a run came to nothing, for hosts that wait for its ranks.
  void has_failed(Error const& error);
  /// Behind a failure: what ranks have told this host is not to be consumed any more.
  void forget_host_counts();

  /// Names for messages: "window 'inbox'", "the world".
  std::string window_name(u32 number) const;
  std::string communicator_name(u32 number) const;
  /// "window 'inbox' of rank 3 at element 7", or the bare address.
  std::string describe(void const* address) const;
  Layout const& layout() const { return layout_; }
  Peers const& peers() const { return peers_; }
  Proxy* proxy() const { return proxy_.get(); }  ///< null: all ranks are in reach
  WorldOptions const& options() const { return options_; }
  u32 number() const { return number_; }

  // For the run in progress: nobody else touches these meanwhile.
  Heap& heap() { return heap_; }
  Heap const& heap() const { return heap_; }
  std::map<u32, WindowRecord> const& windows() const { return windows_; }
  WindowInfo const& tags() const { return tags_; }
  /// For ranks of an own device.
  FreedWindows freed_windows(u32 own_device) const { return freed_.on(own_device, next_window_); }
  LaneKeeper& lanes() { return lanes_; }
  DeviceRunMemory& run_memory(u32 own_device) { return run_memory_[own_device]; }
  TraceMemory& trace_memory() { return trace_memory_; }
  u64 run_words() const { return run_words_; }  ///< RunWords of each device, in the heap
  /// Before a run: its end sweeps what the heap has for counters by now.
  void follow_heap();
  /// After runs whose ranks did not meet at their end: counters and RunWords of own devices.
  void clear_counters(u32 last_run);
  /// Returns when no kernel of a run that has ended goes on. \throws Error if a device is broken
  void let_kernels_end();
  Crew* crew(std::string_view kind);          ///< null: launches on that kind share nothing
  u64 last_end() const { return last_end_; }  ///< of a run, on the host's clock
  void has_ended_at(u64 time) { last_end_ = time; }
  /// A run has failed: those that were begun behind it end, and are told why. Then cleans up, while
  /// nothing is begun.
  void end_queued(RunRecord const& failed, Error const& error,
                  std::function<void(u32 last_run)> const& clean_up);
  /// Where the states of own devices lie side by side, for those that share a launch; null: none
  /// do.
  RunState* split_states() const { return split_states_.as<RunState>(); }
  /// Whether runs are launches in streams of the devices, and over when their kernels have ended.
  bool queues_runs() const { return devices_queue_ && !proxy_; }
  /// The same number in all processes. The next `count` runs have begun.
  u32 next_runs(u32 count = 1);
  void go_on_behind(u32 run);  ///< the next one will be behind it
  u32 runs() const { return runs_; }
  std::string const& trace_file(Launch const& launch) const {
    return launch.trace.empty() ? options_.trace : launch.trace;
  }
  /// Whether two ranks are of one group of a communicator.
  bool same_group(u32 one, u32 other, u32 communicator) const;

 private:
  void make_run_words();
  void make_run_memory();
  void end_supervisor();
  void close();
  /// Throws if a host call is not allowed here.
  void guard(std::string_view operation, std::string_view of = {}) const;
  void check_launch(KernelImage const& image, Launch const& launch) const;
  std::shared_ptr<RunRecord> enqueue(std::shared_ptr<RunRecord> const& record, bool awaited);
  void supervise();  // the thread that sees to what nobody waits for
  void wait_until_idle(std::unique_lock<std::mutex>& lock);
  void help(std::unique_lock<std::mutex>& lock, std::function<bool()> const& enough);
  bool begin(std::shared_ptr<RunRecord> const& record, bool behind);
  void let_streams_wait(std::vector<Stream*> const& streams,
                        std::shared_ptr<RunRecord> const& record);
  Communicator make_communicator(Communicator::Shape shape, u32 groups, u32 places);
  u64 upload(void const* data, u64 bytes);  // to the same offset of every device
  void upload_parts(WindowRecord const& record);
  void furnish_window(World::WindowSpec const& spec, WindowRecord& record);
  void give_back(WindowRecord const& record);
  WindowRecord& record_of(WindowInfo const& info, std::string_view operation);
  void place_extents(World::WindowSpec const& spec, WindowRecord& record);
  /// Where a rank's part is, as an own device names it, or the host if there is none.
  char* part_of(std::optional<u32> own, WindowRecord const& record, u32 rank) const;
  Place place_of(WindowRecord const& record, u32 rank) const;
  // Memory of users (windows/user_windows.cpp):
  void register_memory(World::WindowSpec const& spec, WindowRecord& record);
  void check_memory(World::WindowSpec const& spec);
  std::string offer_memory(World::WindowSpec const& spec, WindowRecord& record,
                           std::vector<Descriptor>& files);
  void take_memory(WindowRecord& record, std::vector<std::string> const& offers,
                   std::map<std::pair<u32, u32>, Descriptor> const& files);
  bool any_without_devices() const;
  std::string answer(std::string_view question);  // another process's
  void transfer_far(Place place, void* target, void const* source, u64 bytes);
  void transfer(WindowRecord const& record, u64 element_bytes, RankId rank, u64 offset,
                void* target, void const* source, u64 count);
  void raise_far(u32 device, u64 counter, u64 sender_word, u32 sender);
  void wait_for_turn(std::unique_lock<std::mutex>& lock);
  u32 host_count(WindowInfo const& info, Tag tag) const;
  bool idle();
  std::optional<Error> failure_behind(u64 before) const;
  u64 failures_before_last_launch() const;

  WorldOptions const options_;
  u32 const number_;
  Peers const peers_;
  Layout layout_;
  Heap heap_;
  Places places_{layout_, heap_};
  bool const devices_queue_;  // all their kinds queue launches
  LaneKeeper lanes_;
  std::unique_ptr<Proxy> proxy_;
  HostEndpoint endpoint_{layout_, proxy_};
  std::optional<Answering> answering_;
  u64 run_words_ = 0;
  std::vector<Heap::Range> followed_;
  std::vector<DeviceRunMemory> run_memory_;
  TraceMemory trace_memory_{layout_, options_.trace_events};
  Allocation split_states_;
  std::map<std::string, std::unique_ptr<Crew>, std::less<>> crews_;  // by kind
  u32 next_communicator_ = 0, next_window_ = 1;
  std::atomic<u32> runs_ = 0;
  Communicator world_communicator_, device_communicator_;
  WindowInfo tags_;  // the default tag space
  std::map<u32, WindowRecord> windows_;
  FreedNumbers freed_;                                 // of windows_
  std::map<u32, std::vector<i64>> colors_;             // of each split, by its number
  int const exceptions_ = std::uncaught_exceptions();  // when it was made

  DeviceLocks locks_;
  Agreement agreement_;
  u64 last_end_ = 0;
  mutable std::mutex failures_mutex_;
  u64 failures_ = 0, failures_at_launch_ = 0;  // of runs; guarded by it, as the next
  std::optional<Error> last_failure_;
  std::mutex launching_;  // held while a run is begun at once; before mutex_
  std::mutex mutex_;      // of everything above and the queue
  std::condition_variable changed_, supervisor_wakes_;
  std::deque<std::shared_ptr<RunRecord>> queue_;  // the first one runs, or is about to
  bool closing_ = false, urgent_ = false;
  std::atomic<u32> pins_ = 0, helpers_ = 0;
  std::atomic<bool> supervisor_sleeps_ = false;
  std::thread supervisor_;
};

/// The World of that number. \throws Error(misuse) if it is gone
std::shared_ptr<WorldState> world_of(u32 number, std::string_view operation);

/// Sees to a run that the caller drives, until it is over.
void drive(std::shared_ptr<RunRecord> const& record);

}  // namespace meshpost::detail
