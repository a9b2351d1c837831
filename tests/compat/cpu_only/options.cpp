// The thesis's command line, and what only CPU devices can tell.
#include "compat/dcuda_options.hpp"

#include "compat/dcuda.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::Program;
using test::says;

compat::DcudaOptions parse(std::vector<char const*> words) {
  words.insert(words.begin(), "program");
  return compat::parse_dcuda_options(static_cast<int>(words.size()), words.data());
}

TEST(DcudaOptions, of_one_process_are_accepted) {
  EXPECT_FALSE(parse({}).device);
  EXPECT_FALSE(compat::parse_dcuda_options(0, nullptr).device);
  EXPECT_EQ(parse({"-d", "3", "-p", "0", "-n", "1", "-r", "localhost", "-l"}).device, 3u);
  EXPECT_EQ(parse({"--dev_id=2", "--proc_id=0", "--n_procs", "1", "--root_name=host0", "--is_root"})
                .device,
            2u);
}

TEST(DcudaOptions, leave_the_programs_own_alone) {
  EXPECT_EQ(parse({"-x", "1", "input.txt", "--size=4", "--is_rooted", "-d", "1"}).device, 1u);
  EXPECT_FALSE(parse({"-x", "--", "-d", "1", "-n", "many"}).device);
}

TEST(DcudaOptions, say_which_process_of_how_many_this_is) {
  auto const second = parse({"-n", "4", "-p", "1", "-r", "node-a"});
  EXPECT_EQ(second.processes, 4u);
  EXPECT_EQ(second.process, 1u);
  EXPECT_EQ(second.leader, "node-a");
  EXPECT_EQ(parse({"--n_procs=2", "--proc_id=0", "--is_root"}).processes, 2u);
}

TEST(DcudaOptions, of_impossible_processes_are_refused) {
  auto const error = [](std::vector<char const*> words) { return error_of([&] { parse(words); }); };
  EXPECT_TRUE(
      says(error({"-n", "0"}), Kind::bad_argument, {"dcuda_host_init", "0 processes", "--"}));
  EXPECT_TRUE(says(error({"-p", "1"}), Kind::bad_argument, {"process 1", "-p"}));
  EXPECT_TRUE(says(error({"-n", "4", "-p", "4"}), Kind::bad_argument, {"process 4", "0 to 3"}));
  EXPECT_TRUE(says(error({"-n", "4", "-p", "2", "-l"}), Kind::bad_argument,
                   {"process 2 is to lead", "process 0"}));
}

TEST(DcudaOptions, become_a_launchers_variables) {
  std::string const secret(64, 'a');
  auto const job_of = [&](std::vector<char const*> words, char const* rendezvous = nullptr) {
    return job_from(compat::variables_of(parse(words), [=, &secret](char const* name) {
      if (name == std::string("MESHPOST_SECRET")) return secret.c_str();
      return name == std::string("MESHPOST_RENDEZVOUS") ? rendezvous : nullptr;
    }));
  };
  auto const here = job_of({"-n", "3", "-p", "2", "-r", "localhost"});
  EXPECT_EQ(here.processes, 3u);
  EXPECT_EQ(here.process, 2u);
  EXPECT_TRUE(here.rendezvous.starts_with("file:/tmp/meshpost-")) << here.rendezvous;
  EXPECT_EQ(job_of({"-n", "3"}).rendezvous, here.rendezvous);
  EXPECT_EQ(job_of({"-n", "3", "-r", "node-a"}).rendezvous, "node-a:7411");
  EXPECT_EQ(job_of({"-n", "3", "-r", "node-a:99"}).rendezvous, "node-a:99");
  EXPECT_EQ(job_of({"-n", "3", "-r", "node-a"}, "node-b:5").rendezvous, "node-b:5");
}

TEST(DcudaOptions, that_make_no_sense_are_refused) {
  auto const error = [](std::vector<char const*> words) { return error_of([&] { parse(words); }); };
  EXPECT_TRUE(says(error({"-d", "first"}), Kind::bad_argument, {"dev_id", "'first'"}));
  EXPECT_TRUE(says(error({"-d", "-1"}), Kind::bad_argument, {"'-1'"}));
  EXPECT_TRUE(says(error({"-d", "99999999999"}), Kind::bad_argument, {"99999999999"}));
  EXPECT_TRUE(says(error({"--n_procs="}), Kind::bad_argument, {"n_procs", "''"}));
  EXPECT_TRUE(says(error({"-r"}), Kind::bad_argument, {"nothing follows -r"}));
}

void without_init(dcuda_context_handle /*dcuda*/) {
  __shared__ dcuda_state gst;
  dcuda_comm_barrier(gst, DCUDA_COMM_WORLD);
}

void nothing(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  dcuda_gpu_finish(gst);
}

TEST(DcudaOnCpus, a_device_that_is_chosen_in_vain_is_named_and_the_program_runs) {
  auto const warnings_with = [](std::vector<char const*> words) {
    test::Listener const listener;
    words.insert(words.begin(), "program");
    std::vector<char*> values;
    for (auto const* word : words) values.push_back(const_cast<char*>(word));
    dcuda_host_context_handle context = nullptr;
    dcuda_host_init(static_cast<int>(values.size()), values.data(), &context, nothing, 1);
    dcuda_host_run(context);
    dcuda_host_finish(context);
    return listener.warnings();
  };
  auto const warnings = warnings_with({"-d", "9"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings.front().starts_with("dcuda_host_init: -d 9 has no effect"))
      << warnings.front();
  EXPECT_TRUE(warnings_with({"-d", "0"}).empty());
  EXPECT_TRUE(warnings_with({}).empty());
}

TEST(DcudaOnCpus, use_before_init_is_named) {
  Program const program(without_init, 2);
  EXPECT_TRUE(
      says(error_of([&] { program.run(); }), Kind::kernel_failed, {"before dcuda_gpu_init"}));
}

TEST(DcudaOnCpus, thread_numbers_mean_nothing_outside_of_kernels) {
  EXPECT_TRUE(says(error_of([] { threadIdx; }), Kind::misuse, {"outside of a kernel"}));
  EXPECT_TRUE(says(error_of([] { __syncthreads(); }), Kind::misuse, {"outside of a kernel"}));
}

struct Shared {
  int* first;  // by rank: content of shared memory at the beginning
};
void dirty_shared_memory(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  __shared__ int word;
  dcuda_gpu_init(dcuda, gst);
  void* data = nullptr;
  dcuda_get_data(gst, &data);
  if (threadIdx.x == 0) static_cast<Shared*>(data)->first[blockIdx.x] += word;
  __syncthreads();
  word = 1 + static_cast<int>(blockIdx.x) * (threadIdx.x == 0 ? 1 : 0);
  __syncthreads();
  dcuda_gpu_finish(gst);
}

TEST(DcudaOnCpus, shared_memory_is_the_ranks_own_and_new_in_each_run) {
  std::vector<int> first(6);
  Program const program(dirty_shared_memory, 6, 1);
  for (int i = 0; i < 3; ++i) program.run(Shared{first.data()});
  EXPECT_EQ(first, std::vector<int>(6));
}

TEST(DcudaOnCpus, there_are_four_ranks_a_core_by_default) {
  dcuda_host_context_handle ctx = nullptr;
  auto options = test::one_device(0);
  options.devices = "";
  dcuda_host_init(options, &ctx, without_init, 1);
  dcuda_rank_info info{};
  dcuda_host_get_rank_info(ctx, &info);
  EXPECT_GE(info.rank_count, 4);
  EXPECT_EQ(info.rank_count % 4, 0);
  dcuda_host_finish(ctx);
}

}  // namespace
}  // namespace meshpost
