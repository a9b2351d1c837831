// COACCEL's pipelines whose groups lie in several processes. Run by two and by three.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "mpi/coaccel.hpp"

namespace meshpost::test {
namespace {

constexpr std::size_t size = 1'000'003, chunk = 20'000;  // the last chunk is shorter

// One process's part of a pipeline. `memory` has the data at the end that is home.
struct Part {
  Bytes8 memory, result;
  int home = 0, compute = -1;
  unsigned char add = 0;
  std::size_t fails_at = ~std::size_t{0};  // the compute function
  std::size_t load_fails_at = ~std::size_t{0};
  coaccel_pipeline pipeline = nullptr;
  std::vector<coaccel_address> dst{}, src{};
  std::vector<std::size_t> sizes{};
  std::atomic<unsigned> computed{0};
  std::atomic<std::size_t> asked{0};  // the last chunk for level 1
  bool waits = false;                 // the computation of chunk 0, for chunk 3

  // A chunk in two pieces, from or to this process's data.
  coaccel_memreq pieces(unsigned char* at, bool out, int level, std::size_t idevice,
                        std::size_t bytes) {
    auto* const buffer = static_cast<unsigned char*>(coaccel_pipeline_buffer(
                             pipeline, level, out ? COACCEL_IN : COACCEL_OUT)) +
                         (level_is_far ? 0 : idevice);
    std::size_t const half = bytes / 2;
    dst = out ? std::vector<void*>{buffer, buffer + half} : std::vector<void*>{at, at + half};
    src = out ? std::vector<void*>{at, at + half} : std::vector<void*>{buffer, buffer + half};
    sizes = {half, bytes - half};
    return {2, dst.data(), src.data(), sizes.data()};
  }
  bool level_is_far = false;  // the one next to home
};

coaccel_memreq move(bool out, int istage, std::size_t ihost, std::size_t idevice,
                    std::size_t szchunk, void* data) {
  auto& part = *static_cast<Part*>(data);
  bool const at_home = out ? istage == std::abs(part.home - 1) : istage == part.home;
  if (part.memory.empty() || !at_home) return {COACCEL_WHOLE, nullptr, nullptr, nullptr};
  if (out && ihost == part.load_fails_at) return {-7, nullptr, nullptr, nullptr};
  auto* const at = (out ? part.memory : part.result).data() + ihost;
  return part.pieces(at, out, std::abs(part.home - 1), idevice, szchunk);
}
coaccel_memreq load(int istage, std::size_t ihost, std::size_t idevice, std::size_t szchunk,
                    void* data) {
  if (istage == 1) static_cast<Part*>(data)->asked = ihost;
  return move(static_cast<Part*>(data)->home == 0, istage, ihost, idevice, szchunk, data);
}
coaccel_memreq save(int istage, std::size_t ihost, std::size_t idevice, std::size_t szchunk,
                    void* data) {
  return move(static_cast<Part*>(data)->home != 0, istage, ihost, idevice, szchunk, data);
}
int add(int, std::size_t ihost, std::size_t idevice, void* data) {
  auto& part = *static_cast<Part*>(data);
  if (ihost == part.fails_at) return 3;
  auto const at = [&](int direction) {
    return static_cast<unsigned char*>(
               coaccel_pipeline_buffer(part.pipeline, part.compute, direction)) +
           idevice;
  };
  auto *const in = at(COACCEL_IN), *const out = at(COACCEL_COMPUTED);
  // Level 1 asks for chunk 3 when it has chunk 2.
  for (int i = 0; part.waits && ihost == 0 && part.asked < 3 * chunk; ++i) {
    if (i == 20'000) return 4;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::size_t i = 0; i < std::min(chunk, size - ihost); ++i)
    out[i] = static_cast<unsigned char>(in[i] + part.add);
  ++part.computed;
  return 0;
}

struct Group {
  explicit Group(std::vector<std::string> const& names, int compute) {
    for (auto const& name : names) devices.push_back(coaccel_device_open(name.c_str()));
    group = coaccel_group_init(static_cast<int>(devices.size()), devices.data(), compute);
    if (!group) ADD_FAILURE() << last_error();
  }
  ~Group() {
    coaccel_group_done(group);
    for (auto* const one : devices) coaccel_device_close(one);
  }
  Group(Group const&) = delete;
  Group& operator=(Group const&) = delete;
  std::vector<coaccel_device> devices;
  coaccel_device_group group;
};

void make(Part& part, Group const& group, bool reverse = false) {
  part.home = reverse ? static_cast<int>(group.devices.size()) - 1 : 0;
  part.pipeline = coaccel_pipeline_init(group.group, size, chunk, reverse ? 1 : 0, load, save,
                                        part.compute >= 0 ? add : nullptr, nullptr, &part);
  ASSERT_NE(part.pipeline, nullptr) << last_error();
}

std::string process(Part& part) {
  coaccel_pipeline_process(part.pipeline);
  char const* const text = coaccel_last_error();
  return text ? text : "";
}

void expect_added(Part const& part, unsigned char value) {
  for (std::size_t i = 0; i < size; ++i)
    ASSERT_EQ(part.result[i], static_cast<unsigned char>(part.memory[i] + value)) << i;
}

void give_data(Part& part, unsigned seed) {
  part.memory = bytes_of(seed, size);
  part.result.assign(size, poison);
}

using MpiPipeline = MpiDevices;

TEST_F(MpiPipeline, brings_chunks_to_another_process_and_back) {
  for (bool const buffered : {false, true}) {
    Part part;
    bool const far = rank() == 1;
    std::vector<std::string> names{"mpi:0", "pinned", "cpu:0"};
    if (!far)
      names = buffered ? std::vector<std::string>{"pageable", "pinned", "mpi:1"}
                       : std::vector<std::string>{"pinned", "mpi:1"};
    if (far) part.compute = 2, part.add = 11;
    part.level_is_far = !far && !buffered;
    Group const group(names, part.compute);
    make(part, group);
    for (unsigned run = 0; run < 3; ++run) {
      if (!far) give_data(part, run);
      part.computed = 0;
      ASSERT_EQ(process(part), "");
      if (!far) expect_added(part, 11);
      EXPECT_EQ(part.computed, far ? (size + chunk - 1) / chunk : 0);
    }
    coaccel_pipeline_done(part.pipeline);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(MpiPipeline, sends_chunks_while_earlier_ones_are_computed_on) {
  Part part;
  bool const far = rank() == 1;
  if (far) part.compute = 2, part.add = 1, part.waits = true;
  part.level_is_far = !far;
  Group const group(far ? std::vector<std::string>{"mpi:0", "pinned", "cpu:0"}
                        : std::vector<std::string>{"pinned", "mpi:1"},
                    part.compute);
  make(part, group);
  if (!far) give_data(part, 8);
  ASSERT_EQ(process(part), "");
  if (!far) expect_added(part, 1);
  coaccel_pipeline_done(part.pipeline);
}

TEST_F(MpiPipeline, in_reverse_begins_at_the_last_level) {
  Part part;
  bool const far = rank() == 1;
  if (far) part.compute = 0, part.add = 5;
  part.level_is_far = !far;
  Group const group(far ? std::vector<std::string>{"cpu:0", "pinned", "mpi:0:9"}
                        : std::vector<std::string>{"mpi:1:9", "pageable"},
                    part.compute);
  make(part, group, true);
  if (!far) give_data(part, 4);
  ASSERT_EQ(process(part), "");
  if (!far) expect_added(part, 5);
  coaccel_pipeline_done(part.pipeline);
}

TEST_F(MpiPipeline, both_processes_learn_of_a_failure_in_either) {
  for (int const failing : {0, 1}) {
    Part part;
    bool const far = rank() == 1;
    if (far) part.compute = 1, part.add = 1;
    part.level_is_far = !far;
    Group const group(far ? std::vector<std::string>{"mpi:0", "cpu:0"}
                          : std::vector<std::string>{"pinned", "mpi:1"},
                      part.compute);
    make(part, group);
    if (!far) give_data(part, 6);
    if (far && failing == 1) part.fails_at = 7 * chunk;
    if (!far && failing == 0) part.load_fails_at = 7 * chunk;
    auto const error = process(part);
    expect_says(error, failing == 1 ? std::vector<std::string>{"COMP^1 of chunk 7", "it returned 3"}
                                    : std::vector<std::string>{"LOAD^1 of chunk 7", "-7 pieces"});
    if (rank() != failing) expect_says(error, {"process " + std::to_string(failing)});
    EXPECT_NE(process(part), "") << "until the devices are opened again";
    coaccel_pipeline_done(part.pipeline);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(MpiPipeline, both_processes_learn_that_their_chunks_differ) {
  Part part;
  bool const far = rank() == 1;
  Group const group(far ? std::vector<std::string>{"mpi:0", "pinned"}
                        : std::vector<std::string>{"pinned", "mpi:1"},
                    -1);
  part.level_is_far = !far;
  if (!far) give_data(part, 6);
  part.pipeline = coaccel_pipeline_init(group.group, size, far ? chunk + 1 : chunk, 0, load, save,
                                        nullptr, nullptr, &part);
  ASSERT_NE(part.pipeline, nullptr) << last_error();
  expect_says(process(part), {"20000 bytes at its source and 20001 at its target"});
  coaccel_pipeline_done(part.pipeline);
}

TEST_F(MpiPipeline, refuses_groups_that_another_process_would_have_to_make) {
  Part part;
  auto const refused = [&](std::vector<std::string> const& names, int compute,
                           std::vector<std::string> const& pieces) {
    Group const group(names, compute);
    expect_refused(
        coaccel_pipeline_init(group.group, size, chunk, 0, load, save, add, nullptr, &part),
        pieces);
  };
  refused({"pinned", other(0), "cpu:0"}, -1, {"device 1 of 3 is " + other(0), "first or last"});
  refused({"pinned", other(0)}, 1, {"device 1 computes", other(0), "its own group"});
  refused({other(0)}, -1, {"one level"});
  Group const two({other(0), "pinned"}, -1);  // a device can't be opened twice, but given twice
  coaccel_device const twice[] = {two.devices[0], two.devices[1], two.devices[0]};
  auto const group = coaccel_group_init(3, twice, -1);
  ASSERT_NE(group, nullptr) << last_error();
  expect_refused(coaccel_pipeline_init(group, size, chunk, 0, load, save, nullptr, nullptr, &part),
                 {"devices 0 and 2 are both " + other(0)});
  coaccel_group_done(group);
}

struct MpiRelay : MpiDevices {
  MpiRelay() : MpiDevices(3) {}
};

TEST_F(MpiRelay, a_process_in_the_middle_computes_and_passes_chunks_on) {
  Part part;
  part.level_is_far = rank() == 0;
  if (rank() > 0) part.compute = 1, part.add = rank() == 1 ? 20 : 3;
  Group const group(rank() == 0   ? std::vector<std::string>{"pageable", "mpi:1"}
                    : rank() == 1 ? std::vector<std::string>{"mpi:0", "cpu:0", "mpi:2"}
                                  : std::vector<std::string>{"mpi:1", "cpu:0"},
                    part.compute);
  make(part, group);
  if (rank() == 0) give_data(part, 9);
  ASSERT_EQ(process(part), "");
  if (rank() == 0) expect_added(part, 23);
  // A failure at the end reaches the beginning.
  if (rank() == 2) part.fails_at = 4 * chunk;
  expect_says(process(part), {"COMP^1 of chunk 4", "it returned 3"});
  coaccel_pipeline_done(part.pipeline);
}

}  // namespace
}  // namespace meshpost::test
