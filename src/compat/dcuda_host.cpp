#include "meshpost/compat/dcuda/dcuda_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include "compat/cuda_on_cpu.hpp"
#include "compat/dcuda_options.hpp"
#include "compat/shared_memory.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/compat/dcuda/detail/state.hpp"
#include "meshpost/rma/world.hpp"
#include "rma/world_state.hpp"
#include "world/job.hpp"
#include "world/secret.hpp"

namespace meshpost::compat {
namespace {

constexpr int most_threads = 1024;  // of a CUDA block

// The kernel of a CPU device: called once for each thread of each rank, on that thread's fiber.
void run_on_cpu(void const* kernel, void const* state, Block /*block*/, u32 local_rank,
                void* /*scratch*/) {
  enter_block(local_rank, static_cast<RunState const*>(state)->ranks_per_device);
  auto const entry = *static_cast<dcuda_kernel_t const*>(kernel);
  entry(static_cast<dcuda_context_handle>(const_cast<void*>(state)));
}

KernelImage image_of(DcudaKernel const& kernel) {
  KernelImage image;
  image.abi = kernel.abi;
  image.name = "the dCUDA kernel";
  if (kernel.by_nvcc) image.cuda = reinterpret_cast<void const*>(kernel.entry);
  else image.cpu = &run_on_cpu;
  image.arguments = Arguments::state_address;
  return image;
}

[[noreturn]] void refuse(Kind kind, std::string cause, std::string remedy) {
  throw Error(kind, "dcuda_host_init", std::move(cause), std::move(remedy));
}

// One device, of the kind that the kernel was compiled for.
WorldOptions for_one_device(WorldOptions options, bool by_nvcc) {
  std::string const wanted = by_nvcc ? "cuda" : "cpu";
  auto const job = options.processes ? options.processes->job() : job_from(std::getenv);
  bool const alone = options.alone || job.alone();
  // Processes of a host share its GPUs evenly; a World ensures that.
  bool const any_gpu = by_nvcc && !alone && options.devices.empty();
  if (options.devices.empty() && !any_gpu) options.devices = wanted + (by_nvcc ? ":0" : ":1");
  auto const kind = options.devices.substr(0, options.devices.find(':'));
  if (by_nvcc && kind == "cpu")
    refuse(
        Kind::bad_argument,
        fmt::format(
            "the devices '{}' were asked for, but nvcc compiled the kernel: it runs on GPUs only",
            options.devices),
        "ask for cuda:0, or compile the program where MESHPOST_CUDA is off");
  if (!by_nvcc && kind == "cuda")
    refuse(Kind::bad_argument,
           fmt::format(
               "the devices '{}' were asked for, but the kernel was compiled for CPU devices only",
               options.devices),
           "ask for cpu:1, or compile it with nvcc: meshpost_add_executable does where "
           "MESHPOST_CUDA is on");
  if (by_nvcc && backend(wanted).count() == 0)
    refuse(Kind::bad_environment,
           fmt::format("nvcc compiled the kernel, and there is no GPU here: {}",
                       backend(wanted).why_none()),
           "run it where there is one, or compile the program where MESHPOST_CUDA is off");
  if (any_gpu) return options;
  auto const devices = open_devices(options.devices);
  if (devices.size() != 1)
    refuse(Kind::bad_argument,
           fmt::format("'{}' are {} devices; a dCUDA process drives one", options.devices,
                       devices.size()),
           fmt::format("set MESHPOST_DEVICES={}", by_nvcc ? "cuda:0 (or another one)" : "cpu:1"));
  if (!by_nvcc && options.ranks == 0)
    options.ranks = std::max(4u, 4 * devices.front()->info().processors);
  return options;
}

// Joins the processes that the command line asks for. Null if it asks for one, or a launcher has
// started them. They stay joined, as with a launcher.
std::shared_ptr<Processes> join_as(DcudaOptions const& asked) {
  static std::mutex mutex;
  begin_secrets();  // before `joined`, whose thread needs them until it ends
  static std::shared_ptr<Processes> joined;
  if (asked.processes == 1) return nullptr;
  if (auto const job = job_from(std::getenv); !job.alone()) {
    if (job.processes == asked.processes && job.process == asked.process) return nullptr;
    refuse(Kind::bad_argument,
           fmt::format("-n and -p say process {} of {}, and {} says {} of {}", asked.process,
                       asked.processes, job.launcher, job.process, job.processes),
           "leave it to the launcher, or start the processes by hand");
  }
  std::scoped_lock const lock(mutex);
  if (!joined) joined = std::make_shared<Processes>(job_from(variables_of(asked, std::getenv)));
  if (joined->count() == asked.processes && joined->number() == asked.process) return joined;
  refuse(
      Kind::misuse,
      fmt::format("-n and -p say process {} of {}, and this is process {} of {} since an earlier "
                  "call",
                  asked.process, asked.processes, joined->number(), joined->count()),
      "give the same options again");
}

// A name that is the same in all processes on one host, or of one MESHPOST_NODE.
std::string own_node(Job const& job) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return fmt::format("{}/{}", name, job.node);
}

class Context {
 public:
  Context(WorldOptions const& options, DcudaKernel const& kernel, u32 threads)
      : world_(options),
        parts_(overlapping<u64>(
            sizeof(Part) / sizeof(u64) * dcuda_communicators * dcuda_windows * world_.size(),
            "dCUDA windows")),
        device_(*world_.devices().front()),
        tables_(device_.allocate(Bytes{sizeof(DcudaTables)}, MemoryKind::device)),
        kernel_(kernel),
        threads_(threads) {
    if (world_.processes() > 1) share();
  }

  World const& world() const { return world_; }
  dcuda_rank_info const& rank_info() const { return rank_info_; }
  /// cudaMalloc takes no more from it. `self` lives until all taken memory has come back.
  void end(std::shared_ptr<Context> self) {
    if (memory_) memory_->end(std::move(self));
  }
  Device const& device() const { return device_; }
  std::vector<double> timings() {
    std::scoped_lock const lock(mutex_);
    return timings_;
  }

  double run(void* data, u64 size) {
    std::scoped_lock const lock(mutex_);
    timings_.clear();
    if (size > data_.size()) data_ = device_.allocate(Bytes{size}, MemoryKind::device);
    if (size != 0) device_.write(data_.data(), data, Bytes{size});
    DcudaTables const tables{size != 0 ? data_.data() : nullptr, parts_.info().offset,
                             shared_.as<DcudaShared>()};
    device_.write(tables_.data(), &tables, Bytes{sizeof tables});
    Launch launch;
    launch.threads = {threads_, 1, 1};
    launch.thread_a_rank = true;
    launch.user = tables_.data();
    auto run = world_.start(image_of(kernel_), &kernel_.entry, sizeof kernel_.entry, launch);
    RunResult const& result = run.wait();
    if (size != 0) device_.read(data, data_.data(), Bytes{size});
    for (double const seconds : result.timings[world_.process()]) timings_.push_back(seconds * 1e3);
    return result.seconds * 1e3;
  }

 private:
  // One block on each device, which is the part of each of its ranks.
  template <class T>
  Window<T> overlapping(u64 count, char const* name) {
    return world_.window<T>(std::vector<Extent>(world_.size(), Extent{0, count}), Tags{0}, name);
  }

  // Makes what several processes need in addition: memory for cudaMalloc that all can reach, and a
  // table of the places where each has the symmetric heap.
  void share() {
    auto const bases = overlapping<u64>(world_.device_count(), "bases of dCUDA's processes");
    auto const bytes = shared_memory_bytes(kernel_.by_nvcc);
    auto const memory = overlapping<char>(bytes, "dCUDA's cudaMalloc");
    auto const state = detail::world_of(memory.info().world, "dcuda_host_init");
    auto const& layout = state->layout();
    memory_.emplace(state->heap().at(layout.first_device, memory.info().offset), bytes);
    DcudaShared const shared{parts_.info(), bases.info()};
    shared_ = device_.allocate(Bytes{sizeof shared}, MemoryKind::device);
    device_.write(shared_.data(), &shared, Bytes{sizeof shared});

    auto const& group = state->group();
    auto const nodes = group.exchange("dcuda_host_init", own_node(group.processes().job()));
    auto const number = [](auto count) { return static_cast<int>(count); };
    rank_info_.rank_start = number(layout.first_device * layout.ranks_per_device);
    rank_info_.process_count = number(group.count());
    rank_info_.process_index = number(group.number());
    auto const own = nodes.begin() + group.number();
    rank_info_.device_count = number(std::count(nodes.begin(), nodes.end(), *own));
    rank_info_.device_index = number(std::count(nodes.begin(), own, *own));
    std::vector<std::string> different;  // in the order of their first processes
    for (auto const& node : nodes)
      if (std::ranges::find(different, node) == different.end()) different.push_back(node);
    rank_info_.node_count = number(different.size());
    rank_info_.node_index = number(std::ranges::find(different, *own) - different.begin());
  }

  World world_;
  Window<u64> parts_;  // Part[communicator][window][world rank]
  Device& device_;
  Allocation tables_, data_, shared_;
  std::optional<SharedMemory> memory_;
  dcuda_rank_info rank_info_{.rank_count = static_cast<int>(world_.size()),
                             .rank_responsible = static_cast<int>(world_.ranks_per_device()),
                             .rank_start = 0,
                             .device_count = 1,
                             .device_index = 0,
                             .node_count = 1,
                             .node_index = 0,
                             .process_count = 1,
                             .process_index = 0};
  DcudaKernel kernel_;
  u32 threads_;
  std::vector<double> timings_;  // ms
  std::mutex mutex_;
};

// Handles are numbers that are never used again, so that one of a finished context is detected.
struct Contexts {
  std::mutex mutex;
  std::map<dcuda_host_context_handle, std::shared_ptr<Context>> all;
  std::size_t made = 0;
};
Contexts& contexts() {
  static auto* const one = new Contexts;
  return *one;
}

std::shared_ptr<Context> context_of(dcuda_host_context_handle ctx, char const* operation) {
  std::scoped_lock const lock(contexts().mutex);
  auto const found = contexts().all.find(ctx);
  if (found == contexts().all.end())
    throw Error(Kind::misuse, operation,
                ctx ? "dcuda_host_finish has ended this context, or dcuda_host_init never made it"
                    : "the context is null",
                "use a context between dcuda_host_init and dcuda_host_finish");
  return found->second;
}

[[noreturn]] void refuse_null(char const* operation, char const* what) {
  throw Error(Kind::bad_argument, operation, fmt::format("{} is null", what), "pass one");
}

void check_arguments(dcuda_host_context_handle const* ctx, DcudaKernel const& kernel, int threads) {
  if (!ctx) refuse_null("dcuda_host_init", "the pointer for the context");
  if (!kernel.entry) refuse_null("dcuda_host_init", "the kernel");
  if (threads < 1 || threads > most_threads)
    refuse(Kind::bad_argument, fmt::format("{} threads a rank were asked for", threads),
           fmt::format("use 1 to {}", most_threads));
}

}  // namespace

void dcuda_init(int argc, char const* const* argv, dcuda_host_context_handle* ctx,
                DcudaKernel kernel, int threads_per_rank) {
  check_arguments(ctx, kernel, threads_per_rank);
  auto const asked = parse_dcuda_options(argc, argv);
  WorldOptions options;
  options.processes = join_as(asked);
  if (asked.device && kernel.by_nvcc) options.devices = fmt::format("cuda:{}", *asked.device);
  // Not refused: scripts that start a process for each device give each another number.
  if (asked.device.value_or(0) != 0 && !kernel.by_nvcc)
    warn(
        fmt::format("dcuda_host_init: -d {} has no effect: the kernel was compiled for CPU "
                    "devices, and each process has its own; leave -d out",
                    *asked.device));
  dcuda_init(options, ctx, kernel, threads_per_rank);
}

void dcuda_init(WorldOptions const& options, dcuda_host_context_handle* ctx, DcudaKernel kernel,
                int threads_per_rank) {
  check_arguments(ctx, kernel, threads_per_rank);
  auto made = std::make_shared<Context>(for_one_device(options, kernel.by_nvcc), kernel,
                                        static_cast<u32>(threads_per_rank));
  std::scoped_lock const lock(contexts().mutex);
  *ctx = reinterpret_cast<dcuda_host_context_handle>(++contexts().made);
  contexts().all.emplace(*ctx, std::move(made));
}

double dcuda_run(dcuda_host_context_handle ctx, void* gpu_data, std::size_t gpu_size) {
  auto const context = context_of(ctx, "dcuda_host_run");
  if (!gpu_data && gpu_size != 0)
    refuse_null("dcuda_host_run", fmt::format("the data of {} bytes", gpu_size).c_str());
  return context->run(gpu_data, gpu_size);
}

int dcuda_device(dcuda_host_context_handle ctx) {
  return static_cast<int>(context_of(ctx, "dcuda_host_init")->device().index());
}

}  // namespace meshpost::compat

void dcuda_host_get_rank_info(dcuda_host_context_handle ctx, dcuda_rank_info* rank_info) {
  using namespace meshpost;
  auto const context = compat::context_of(ctx, "dcuda_host_get_rank_info");
  if (!rank_info)
    compat::refuse_null("dcuda_host_get_rank_info", "the pointer for the information");
  *rank_info = context->rank_info();
}

std::vector<double> dcuda_host_get_timings(dcuda_host_context_handle ctx) {
  return meshpost::compat::context_of(ctx, "dcuda_host_get_timings")->timings();
}

void dcuda_host_finish(dcuda_host_context_handle ctx) {
  using namespace meshpost::compat;
  auto context = context_of(ctx, "dcuda_host_finish");
  {
    std::scoped_lock const lock(contexts().mutex);
    contexts().all.erase(ctx);
  }
  context->end(context);
}
