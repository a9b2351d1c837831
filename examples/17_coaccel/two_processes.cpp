// A COACCEL pipeline whose levels lie in two processes of an MPI job. Process 0 has the numbers.
// Process 1 doubles them, chunk by chunk, and they return.
#include <meshpost/compat/coaccel_mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace {

constexpr size_t count = 1'000'000, size = count * sizeof(float), chunk = size / 50;

struct Job {
  std::vector<float> numbers, doubled;
  coaccel_pipeline pipeline = nullptr;
  coaccel_address dst{}, src{};  // a list of one piece
  size_t bytes = 0;
};

void check(bool holds, char const* what) {
  if (holds) return;
  char const* const error = coaccel_last_error();
  std::fprintf(stderr, "%s: %s\n", what, error ? error : "wrong");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// [home]
// Process 0: numbers go to level 1, which is process 1, and come back from there.
coaccel_memreq load(int /*level*/, size_t first, size_t /*place*/, size_t bytes, void* data) {
  auto& job = *static_cast<Job*>(data);
  job.dst = coaccel_pipeline_buffer(job.pipeline, 1, COACCEL_IN);
  job.src = reinterpret_cast<char*>(job.numbers.data()) + first;
  job.bytes = bytes;
  return {1, &job.dst, &job.src, &job.bytes};
}
coaccel_memreq save(int /*level*/, size_t first, size_t /*place*/, size_t bytes, void* data) {
  auto& job = *static_cast<Job*>(data);
  job.dst = reinterpret_cast<char*>(job.doubled.data()) + first;
  job.src = coaccel_pipeline_buffer(job.pipeline, 1, COACCEL_OUT);
  job.bytes = bytes;
  return {1, &job.dst, &job.src, &job.bytes};
}
// [/home]

// Process 1, at level 2.
int compute(int /*mode*/, size_t first, size_t place, void* data) {
  auto const& job = *static_cast<Job*>(data);
  auto const at = [&](int direction) {
    auto* const buffer = coaccel_pipeline_buffer(job.pipeline, 2, direction);
    return reinterpret_cast<float*>(static_cast<char*>(buffer) + place);
  };
  auto const* const in = at(COACCEL_IN);
  auto* const out = at(COACCEL_COMPUTED);
  for (size_t i = 0; i < std::min(chunk, size - first) / sizeof(float); ++i) out[i] = 2 * in[i];
  return 0;
}

}  // namespace

int main(int arguments, char** values) {
  int level = 0, rank = 0, processes = 0;
  MPI_Init_thread(&arguments, &values, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  check(processes == 2, "start 2 processes");
  check(coaccel_mpi_init(MPI_COMM_WORLD) == 0, "coaccel_mpi_init");

  Job job;
  bool const home = rank == 0;
  // [groups]
  auto const names = home ? std::vector<char const*>{"pinned", "mpi:1"}
                          : std::vector<char const*>{"mpi:0", "pinned", "cpu:0"};
  std::vector<coaccel_device> devices;
  for (auto const* const name : names) devices.push_back(coaccel_device_open(name));
  for (auto* const device : devices) check(device, "coaccel_device_open");
  auto* const group =
      coaccel_group_init(static_cast<int>(devices.size()), devices.data(), home ? -1 : 2);
  job.pipeline =
      home ? coaccel_pipeline_init(group, size, chunk, 0, load, save, nullptr, nullptr, &job)
           : coaccel_pipeline_init(group, size, chunk, 0, nullptr, nullptr, compute, nullptr, &job);
  // [/groups]
  check(job.pipeline, "coaccel_pipeline_init");
  if (home) {
    job.numbers.resize(count);
    std::iota(job.numbers.begin(), job.numbers.end(), 1.f);
    job.doubled.assign(count, -1.f);
  }
  coaccel_pipeline_process(job.pipeline);
  check(coaccel_last_error() == nullptr, "coaccel_pipeline_process");
  for (size_t i = 0; i < job.doubled.size(); ++i)
    check(job.doubled[i] == 2 * job.numbers[i], "the numbers");
  if (home) std::printf("process 1 doubled %zu numbers\n", count);

  coaccel_pipeline_done(job.pipeline);
  coaccel_group_done(group);
  for (auto* const device : devices) coaccel_device_close(device);
  MPI_Finalize();
}
