#include "meshpost/compat/dcuda/dcuda_host.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "compat/cuda_on_cpu.hpp"
#include "compat/dcuda_options.hpp"
#include "meshpost/compat/dcuda/detail/state.hpp"
#include "meshpost/rma/world.hpp"
#include "world/job.hpp"

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
  if (options.devices.empty()) options.devices = wanted + (by_nvcc ? ":0" : ":1");
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
  if (by_nvcc && kind == "cuda" && backend(kind).count() == 0)
    refuse(Kind::bad_environment,
           fmt::format("nvcc compiled the kernel, and there is no GPU here: {}",
                       backend(kind).why_none()),
           "run it where there is one, or compile the program where MESHPOST_CUDA is off");
  if (auto const job = job_from(std::getenv); !job.alone())
    refuse(Kind::bad_environment,
           fmt::format("{} started {} processes; dCUDA programs run in one", job.launcher,
                       job.processes),
           "start it alone, with more ranks");
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

class Context {
 public:
  Context(WorldOptions const& options, DcudaKernel const& kernel, u32 threads)
      : world_(options),
        parts_(world_.window<Part>(std::vector<Extent>(world_.size(), whole_table()), Tags{0},
                                   "dCUDA windows")),
        device_(*world_.devices().front()),
        tables_(device_.allocate(Bytes{sizeof(DcudaTables)}, MemoryKind::device)),
        kernel_(kernel),
        threads_(threads) {}

  World const& world() const { return world_; }
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
    DcudaTables const tables{size != 0 ? data_.data() : nullptr, parts_.info().offset};
    device_.write(tables_.data(), &tables, Bytes{sizeof tables});
    Launch launch;
    launch.threads = {threads_, 1, 1};
    launch.thread_a_rank = true;
    launch.user = tables_.data();
    auto run = world_.start(image_of(kernel_), &kernel_.entry, sizeof kernel_.entry, launch);
    RunResult const& result = run.wait();
    if (size != 0) device_.read(data, data_.data(), Bytes{size});
    for (double const seconds : result.timings.front()) timings_.push_back(seconds * 1e3);
    return result.seconds * 1e3;
  }

 private:
  Extent whole_table() const {
    return {0, u64{dcuda_communicators} * dcuda_windows * world_.size()};
  }

  World world_;
  Window<Part> parts_;  // one table a device: the parts of its ranks overlap
  Device& device_;
  Allocation tables_, data_;
  DcudaKernel kernel_;
  u32 threads_;
  std::vector<double> timings_;  // ms
  std::mutex mutex_;
};

// Handles are numbers, never used again, so that one of a finished context is found out.
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
  if (!ctx) refuse_null("dcuda_host_init", "the place for the context");
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
  if (asked.device && kernel.by_nvcc) options.devices = fmt::format("cuda:{}", *asked.device);
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
  if (!rank_info) compat::refuse_null("dcuda_host_get_rank_info", "the place for the information");
  int const ranks = static_cast<int>(context->world().size());
  *rank_info = {.rank_count = ranks,
                .rank_responsible = ranks,
                .rank_start = 0,
                .device_count = 1,
                .device_index = 0,
                .node_count = 1,
                .node_index = 0,
                .process_count = 1,
                .process_index = 0};
}

std::vector<double> dcuda_host_get_timings(dcuda_host_context_handle ctx) {
  return meshpost::compat::context_of(ctx, "dcuda_host_get_timings")->timings();
}

void dcuda_host_finish(dcuda_host_context_handle ctx) {
  using namespace meshpost::compat;
  auto const context = context_of(ctx, "dcuda_host_finish");
  std::scoped_lock const lock(contexts().mutex);
  contexts().all.erase(ctx);
}
