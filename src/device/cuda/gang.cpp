#include "device/cuda/gang.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "device/logical.hpp"

namespace meshpost::cuda {
namespace {

constexpr size_t static_shared_limit = 48 * 1024;  // more must be asked for

void refuse_blocking_launches(std::string const& kernel) {
  char const* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::string_view(blocking) != "0" && std::string_view(blocking) != "")
    throw Error(
        Kind::bad_environment, fmt::format("launch {}", kernel),
        fmt::format(
            "CUDA_LAUNCH_BLOCKING={} makes each launch wait for its kernel, which waits for the "
            "kernels of the other devices",
            blocking),
        "unset CUDA_LAUNCH_BLOCKING");
}

// What decides whether the ranks of one GPU fit.
struct Fit {
  void const* entry;
  int device;
  u32 threads;  // of a rank
  u64 shared;   // bytes of dynamic shared memory of a rank
  u32 ranks;
  u32 sharers;  // processes
  auto operator<=>(Fit const&) const = default;
};

// In which order kernels of several Worlds run on the GPUs of this process: as they are launched,
// which one launch after the other does. Each World has a stream on each GPU; where another one's
// was the last, the next one's waits for it. So no kernel has its ranks on one GPU while another,
// which has come first on a second, holds what they wait for. Launches only: runs are not waited
// for.
class LaunchOrder {
 public:
  static LaunchOrder& instance() {
    static auto* const order = new LaunchOrder;
    return *order;
  }
  [[nodiscard]] std::unique_lock<std::mutex> take() { return std::unique_lock(mutex_); }
  // While it is taken: what `stream` will be given begins behind all that was launched.
  void put_last(int device, Stream& stream) {
    auto*& last = last_[device];
    if (last && last != &stream) stream.wait(last->record());
    last = &stream;
  }
  // Before it goes. It has nothing to do any more.
  void forget(Stream const& stream) {
    auto const lock = take();
    std::erase_if(last_, [&](auto const& entry) { return entry.second == &stream; });
  }

 private:
  std::mutex mutex_;
  std::map<int, Stream*> last_;
};

// What stays between launches, so that the next one asks the driver for nothing but to launch.
class CudaCrew : public Crew {
 public:
  CudaCrew() = default;
  CudaCrew(CudaCrew const&) = delete;
  CudaCrew& operator=(CudaCrew const&) = delete;
  ~CudaCrew() override {
    for (auto const& [device, stream] : streams_) LaunchOrder::instance().forget(*stream);
  }

  bool knows(Fit const& fit) const { return fits_.contains(fit); }
  void remember(Fit const& fit) { fits_.insert(fit); }

  // The device's own for runs: they follow each other on it.
  Stream& stream(int device) {
    auto& stream = streams_[device];
    if (!stream) stream = make_stream(device);
    return *stream;
  }

  void refuse_blocking_launches(std::string const& kernel) {
    if (!asked_) cuda::refuse_blocking_launches(kernel);
    asked_ = true;
  }

 private:
  std::set<Fit> fits_;
  std::map<int, std::unique_ptr<Stream>> streams_;
  bool asked_ = false;
};

CudaCrew& crew_of(GangSpec const& spec, CudaCrew* own) {
  return own ? *own : static_cast<CudaCrew&>(*spec.crew);
}

// What one GPU runs of a gang, in one launch: for one device, or for the logical ones on it.
class GpuLaunch {
 public:
  GpuLaunch(GangSpec const& spec, SharedGrids grids)
      : spec_(spec),
        grids_(std::move(grids)),
        split_(grids_.count > 1),
        entry_(split_ ? spec.image.cuda_split : spec.image.cuda),
        block_(spec.threads.x == 0 ? dim3(info().default_threads)
                                   : dim3(spec.threads.x, spec.threads.y, spec.threads.z)),
        // What the entry takes lies behind the scratch, aligned as that is.
        shared_(split_ ? (spec.scratch + 15) / 16 * 16 + spec.image.split_scratch
                       : spec.scratch.value) {
    if (!entry_)
      throw Error(Kind::bad_argument, "launch " + name(),
                  fmt::format("it has no entry for {} logical devices of one GPU", grids_.count),
                  "use whole GPUs, such as cuda:0");
  }
  int device() const { return static_cast<int>(grids_.device->index()); }
  std::string name() const {
    return fmt::format("{} on {}", spec_.image.name, grids_.device->name());
  }

  // Loads the kernel on the device (CUDA loads lazily, which could block behind a running kernel)
  // and makes sure that all ranks fit at once. A kernel stays loaded: once is enough.
  void fit(CudaCrew& crew) const {
    Fit const key{entry_, device(), threads(), shared_, grids_.ranks, spec_.sharers};
    if (crew.knows(key)) return;
    check_fit();
    crew.remember(key);
  }

  cudaError_t start(cudaStream_t stream) const {
    void const* const state = grids_.first->state;  // split: the first of several, side by side
    auto* const kernel = const_cast<void*>(spec_.kernel);
    auto* const address = const_cast<void const**>(&state);
    void* with_state[] = {kernel, const_cast<void*>(state)};
    void* with_address[] = {kernel, address};
    void* address_alone[] = {address};
    bool const by_value = spec_.image.arguments == Arguments::kernel_and_state;
    return cudaLaunchCooperativeKernel(entry_, dim3(grids_.first->ranks, grids_.count), block_,
                                       split_     ? with_address
                                       : by_value ? with_state
                                                  : address_alone,
                                       shared_, stream);
  }

 private:
  DeviceInfo const& info() const { return grids_.device->info(); }
  u32 threads() const { return block_.x * block_.y * block_.z; }
  void check_fit() const {
    Current const current(device());
    auto const what = "launch " + name();
    u32 const threads = this->threads();
    cudaFuncAttributes kernel{};
    check(cudaFuncGetAttributes(&kernel, entry_), what);
    if (threads > static_cast<u32>(kernel.maxThreadsPerBlock))
      throw Error(
          Kind::bad_argument, what,
          fmt::format(
              "{} threads a rank were asked for; with its {} registers a thread at most {} fit",
              threads, kernel.numRegs, kernel.maxThreadsPerBlock),
          "use fewer threads, or give the kernel `static constexpr int max_threads` (a dCUDA "
          "kernel: __launch_bounds__)");
    if (shared_ + kernel.sharedSizeBytes > static_shared_limit) allow_scratch(kernel);
    int a_processor = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a_processor, entry_,
                                                        static_cast<int>(threads), shared_),
          what);
    u32 const most = static_cast<u32>(a_processor) * info().processors / spec_.sharers;
    if (grids_.ranks > most)
      throw Error(
          Kind::out_of_memory, what,
          fmt::format(
              "{} ranks{} were asked for, but only {} can be resident at once: {} on each "
              "of {} multiprocessors{}, with {} threads, {} registers a thread and {} bytes "
              "of shared memory",
              grids_.ranks, of_each(), most, a_processor, info().processors, by_processes(),
              threads, kernel.numRegs, kernel.sharedSizeBytes + shared_),
          split_ ? "use fewer ranks, logical devices, threads or scratch"
                 : "use fewer ranks, threads or scratch");
  }

  std::string of_each() const {
    return split_ ? fmt::format(", {} on each of {} logical devices,", grids_.first->ranks,
                                grids_.count)
                  : std::string();
  }
  std::string by_processes() const {
    return spec_.sharers > 1 ? fmt::format(" that {} processes share", spec_.sharers)
                             : std::string();
  }
  // The limit is raised and never lowered: launches that are known to fit count on it.
  void allow_scratch(cudaFuncAttributes const& kernel) const {
    static std::mutex mutex;
    std::scoped_lock const lock(mutex);
    cudaFuncAttributes now{};
    check(cudaFuncGetAttributes(&now, entry_), "launch " + name());
    auto const so_far = static_cast<u64>(now.maxDynamicSharedSizeBytes);
    if (cudaFuncSetAttribute(entry_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(std::max(shared_, so_far))) == cudaSuccess)
      return;
    cudaGetLastError();
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device());
    throw Error(
        Kind::out_of_memory, "launch " + name(),
        fmt::format(
            "{} bytes of scratch a rank were asked for; at most {} fit beside {} static ones",
            spec_.scratch.value, static_cast<u64>(most) - (shared_ - spec_.scratch),
            kernel.sharedSizeBytes),
        "use less scratch");
  }

  GangSpec const& spec_;
  SharedGrids grids_;
  bool split_;
  void const* entry_;
  dim3 block_;
  u64 shared_;  // bytes of dynamic shared memory of a rank
};

std::vector<GpuLaunch> launches_of(GangSpec const& spec, CudaCrew& crew) {
  if (!spec.image.cuda)
    throw Error(Kind::bad_argument, fmt::format("launch {}", spec.image.name),
                "it was not compiled for GPUs",
                "compile it with meshpost_add_executable where nvcc is found");
  std::vector<GpuLaunch> launches;
  for (auto const& grids : by_physical_device(spec.grids))
    launches.emplace_back(spec, grids).fit(crew);
  return launches;
}

class CudaGang : public Gang {
 public:
  explicit CudaGang(GangSpec const& spec)
      : own_crew_(spec.crew ? nullptr : std::make_unique<CudaCrew>()), grids_(spec.grids) {
    auto& crew = crew_of(spec, own_crew_.get());
    crew.refuse_blocking_launches(spec.image.name);
    auto const launches = launches_of(spec, crew);
    auto& order = LaunchOrder::instance();
    auto const launching = order.take();
    for (auto const& launch : launches) {
      Current const current(launch.device());
      streams_.push_back(&crew.stream(launch.device()));
      order.put_last(launch.device(), *streams_.back());
      for (auto const& event : spec.after) streams_.back()->wait(event);
    }
    for (std::size_t i = 0; i < launches.size(); ++i) start(launches[i], *streams_[i]);
  }

  void doze(std::chrono::microseconds patience) override {
    using clock = std::chrono::steady_clock;
    constexpr auto attentive = std::chrono::microseconds(100);
    auto const start = clock::now();
    for (u32 looks = 1; !met() && (looks % 256 != 0 || !finished()); ++looks) {
      auto const waited = clock::now() - start;
      if (waited >= patience) return;
      if (waited >= attentive) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  std::vector<std::shared_ptr<Event>> ends() override {
    std::vector<std::shared_ptr<Event>> events;
    for (auto const& stream : streams_) events.push_back(stream->record());
    return events;
  }
  // A kernel that did not come to its end has to be asked for; others on the stream may be behind
  // it then, and end without having begun.
  bool finished() override {
    if (met()) return true;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto const status = cudaStreamQuery(static_cast<cudaStream_t>(streams_[i]->native()));
      if (status == cudaErrorNotReady) return false;
      if (status != cudaSuccess && !failure_) {
        cudaGetLastError();
        failure_ = to_error(status, names_[i]);
      }
    }
    return true;
  }
  std::optional<Error> failure() override {
    finished();
    return failure_;
  }

 private:
  // Of all grids: their ranks have met at the end of that run.
  bool met(u32 before = 0) const {
    return std::ranges::all_of(grids_, [before](Grid const& grid) { return grid.is_over(before); });
  }
  void start(GpuLaunch const& launch, Stream& stream) {
    Current const current(launch.device());
    auto const status = launch.start(static_cast<cudaStream_t>(stream.native()));
    if (status != cudaSuccess) {
      // The devices launched so far wait for this one: end them before saying so. Not so runs that
      // this one is queued behind, unless one of them has failed.
      auto const poison = [](Grid const& grid) { return std::atomic_ref(grid.control->poison); };
      while (!met(1) && grids_.front().ended && poison(grids_.front()).load() == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      for (auto const& grid : grids_) poison(grid).store(Control::leave_the_end);
      for (auto* const launched : streams_)
        cudaStreamSynchronize(static_cast<cudaStream_t>(launched->native()));
      check(status, "launch " + launch.name());
    }
    names_.push_back(launch.name());
  }

  std::unique_ptr<CudaCrew> const own_crew_;  // null: it has been given one
  std::vector<Grid> const grids_;
  std::vector<Stream*> streams_;  // the crew's
  std::vector<std::string> names_;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<Crew> crew() { return std::make_unique<CudaCrew>(); }
void fit(GangSpec const& spec) {
  CudaCrew own;
  launches_of(spec, crew_of(spec, spec.crew ? nullptr : &own));
}
std::unique_ptr<Gang> launch(GangSpec const& spec) { return std::make_unique<CudaGang>(spec); }

}  // namespace meshpost::cuda
