// The variables of launchers, and the errors if they are wrong.
#include "world/job.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;
using Environment = std::map<std::string, std::string>;

Job job_of(Environment const& environment) {
  return job_from([&](char const* name) -> char const* {
    auto const found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}
Error error_of_job(Environment const& environment) {
  return error_of([&] { job_of(environment); });
}
/// `more` on top of `base`.
Environment with(Environment const& base, Environment more) {
  more.insert(base.begin(), base.end());
  return more;
}

std::string const some_secret(64, 'a');
Environment const ours{{"MESHPOST_PROCESSES", "4"},
                       {"MESHPOST_PROCESS", "2"},
                       {"MESHPOST_RENDEZVOUS", "node-a:4711"},
                       {"MESHPOST_SECRET", some_secret}};
Environment const open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "prterun-a@1"}};
Environment const mpich{
    {"PMI_RANK", "4"}, {"PMI_SIZE", "5"}, {"MPI_LOCALNRANKS", "5"}, {"PMI_JOBID", "kvs_7"}};
Environment const slurm{{"SLURM_PROCID", "5"},         {"SLURM_STEP_NUM_TASKS", "6"},
                        {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "12"},
                        {"SLURM_STEP_ID", "3"},        {"SLURM_NTASKS", "99"}};

TEST(Job, of_no_launcher_is_alone) {
  auto const job = job_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});  // a batch script
  EXPECT_TRUE(job.alone());
  EXPECT_EQ(job.process, 0u);
  EXPECT_EQ(job.launcher, "");
}

TEST(Job, of_meshpost_run_is_read) {
  auto const job =
      job_of(with(ours, {{"MESHPOST_NODE", "b"}, {"MESHPOST_LAUNCHER", "meshpost-run"}}));
  EXPECT_EQ(job.process, 2u);
  EXPECT_EQ(job.processes, 4u);
  EXPECT_EQ(job.launcher, "meshpost-run");
  EXPECT_EQ(job.rendezvous, "node-a:4711");
  EXPECT_EQ(job.secret, some_secret);
  EXPECT_EQ(job.node, "b");
  EXPECT_EQ(job.listener, -1);
  EXPECT_EQ(job_of(ours).launcher, "MESHPOST_PROCESSES");
}

TEST(Job, takes_a_socket_that_listens_for_process_0_alone) {
  auto const more = with(ours, {{"MESHPOST_LISTENER", "7"}});
  EXPECT_EQ(job_of(more).listener, -1);
  auto first = more;
  first["MESHPOST_PROCESS"] = "0";
  EXPECT_EQ(job_of(first).listener, 7);
}

TEST(Job, of_every_launcher_meets_at_a_file_of_its_own_on_one_host) {
  Environment const folder{{"XDG_RUNTIME_DIR", "/var/tmp"}};
  auto const prefix = "file:/var/tmp/meshpost-" + std::to_string(geteuid()) + "-";
  struct Case {
    Environment environment;
    char const* launcher;
    u32 process, processes;
    char const* identity;
  };
  for (auto const& [environment, launcher, process, processes, identity] :
       {Case{open_mpi, "Open MPI", 1, 3, "prterun-a-1"}, Case{mpich, "MPICH", 4, 5, "kvs-7"},
        Case{slurm, "Slurm", 5, 6, "12-3"}}) {
    auto const job = job_of(with(environment, folder));
    EXPECT_EQ(job.launcher, launcher);
    EXPECT_EQ(job.process, process);
    EXPECT_EQ(job.processes, processes);
    EXPECT_EQ(job.rendezvous, prefix + identity);
    EXPECT_FALSE(job.identity.empty());
    EXPECT_EQ(job.secret, "");
  }
}

TEST(Job, without_a_runtime_folder_or_a_name_has_its_file_in_tmp) {
  auto environment = open_mpi;
  environment.erase("PMIX_NAMESPACE");
  auto const in_tmp =
      "file:/tmp/meshpost-" + std::to_string(geteuid()) + "-" + std::to_string(getppid());
  for (auto const* const none : {"", "/run/user/of another host"}) {
    environment["XDG_RUNTIME_DIR"] = none;
    EXPECT_EQ(job_of(environment).rendezvous, in_tmp);
  }
  // MPICH in a job of Slurm: each such job has a step 0.
  auto inside = mpich;
  inside.erase("PMI_JOBID");
  inside["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(job_of(inside).rendezvous, in_tmp);
  EXPECT_EQ(job_of(inside).identity, "");
}

TEST(Job, of_several_parts_of_slurms_has_no_one_name) {
  EXPECT_EQ(job_of(slurm).identity, "12-3");
  EXPECT_EQ(job_of(with(slurm, {{"SLURM_HET_JOB_ID", "11"}})).identity, "");
}

TEST(Job, is_what_the_first_of_the_launchers_says) {
  auto all = with(with(open_mpi, mpich), slurm);
  EXPECT_EQ(job_of(all).launcher, "Open MPI");
  EXPECT_EQ(job_of(with(mpich, slurm)).launcher, "MPICH");
  EXPECT_EQ(job_of(with(ours, all)).launcher, "MESHPOST_PROCESSES");
  all.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(job_of(all).launcher, "MPICH");
}

TEST(Job, of_one_process_is_alone_wherever_it_would_meet) {
  EXPECT_TRUE(job_of({{"MESHPOST_PROCESSES", "1"}, {"MESHPOST_PROCESS", "0"}}).alone());
  EXPECT_TRUE(job_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALNRANKS", "8"}}).alone());
}

TEST(Job, on_several_hosts_must_be_told_where_to_meet) {
  for (auto [environment, name, value] : {std::tuple{open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                          std::tuple{mpich, "MPI_LOCALNRANKS", "1"},
                                          std::tuple{slurm, "SLURM_STEP_NUM_NODES", "2"}}) {
    environment[name] = value;
    EXPECT_TRUE(says(error_of_job(environment), Kind::bad_environment,
                     {"on several hosts", "MESHPOST_RENDEZVOUS", "MESHPOST_SECRET_FILE"}));
    environment["MESHPOST_RENDEZVOUS"] = "node-a:4711";
    EXPECT_TRUE(says(error_of_job(environment), Kind::bad_environment,
                     {"at node-a:4711 and no secret", "MESHPOST_SECRET_FILE"}));
    environment["MESHPOST_SECRET"] = some_secret;
    EXPECT_EQ(job_of(environment).rendezvous, "node-a:4711");
  }
}

// As with srun --mpi=pmi2: it has MPICH's numbers but none of its counts.
TEST(Job, of_slurms_pmi_is_known_to_be_on_several_hosts) {
  auto environment = with(slurm, {{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}});
  EXPECT_FALSE(job_of(environment).rendezvous.empty());
  environment["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_TRUE(says(error_of_job(environment), Kind::bad_environment, {"on several hosts"}));
}

TEST(Job, that_is_malformed_is_refused_with_variable_value_and_what_it_may_be) {
  struct Case {
    Environment const& environment;
    char const* name;
    std::vector<char const*> values;
    char const* allowed;
  };
  std::vector<char const*> const no_numbers{
      "", "x", "-1", "1.5", " 2", "2 ", "0x2", "+1", "99999999999999999999"};
  for (auto const& [environment, name, values, allowed] :
       {Case{ours, "MESHPOST_PROCESSES", {"0", "65537"}, "a whole number from 1 to 65536"},
        Case{ours, "MESHPOST_PROCESSES", no_numbers, "a whole number from 1 to 65536"},
        Case{ours, "MESHPOST_PROCESS", {"4"}, "a whole number from 0 to 3"},
        Case{ours, "MESHPOST_PROCESS", no_numbers, "a whole number from 0 to 3"},
        Case{open_mpi, "OMPI_COMM_WORLD_RANK", {"3"}, "a whole number from 0 to 2"},
        Case{open_mpi, "OMPI_COMM_WORLD_SIZE", no_numbers, "a whole number from 1 to 65536"},
        Case{mpich, "PMI_RANK", no_numbers, "a whole number from 0 to 4"},
        Case{mpich, "PMI_SIZE", {"0"}, "a whole number from 1 to 65536"},
        Case{slurm, "SLURM_PROCID", {"6", "x"}, "a whole number from 0 to 5"},
        Case{slurm, "SLURM_STEP_NUM_TASKS", no_numbers, "a whole number from 1 to 65536"},
        Case{ours,
             "MESHPOST_RENDEZVOUS",
             {"", "host", "host:", ":4711", "host:port", "host:65536", "host:0", "host:-1",
              "file:", "host:4711 "},
             "host:port, where process 0 listens, or file:PATH"}})
    for (auto const* value : values) {
      auto wrong = environment;
      wrong[name] = value;
      EXPECT_TRUE(says(error_of_job(wrong), Kind::bad_environment,
                       {std::string(name) + " is '" + value + "'", allowed}));
    }
  auto listener = ours;
  listener["MESHPOST_PROCESS"] = "0";
  for (auto const* value : {"", "2", "x", "-1"}) {
    listener["MESHPOST_LISTENER"] = value;
    EXPECT_TRUE(says(error_of_job(listener), Kind::bad_environment,
                     {"MESHPOST_LISTENER is '" + std::string(value) + "'", "from 3 to 1048576"}));
  }
  for (auto const* missing : {"MESHPOST_PROCESS", "MESHPOST_PROCESSES", "MESHPOST_RENDEZVOUS"}) {
    auto less = ours;
    less.erase(missing);
    EXPECT_TRUE(says(error_of_job(less), Kind::bad_environment, {missing}));
  }
}

// -- the secret

TEST(Job, never_prints_its_secret) {
  for (auto const& wrong : {std::string("hush"), some_secret + "ed", some_secret.substr(1) + "q"}) {
    auto environment = ours;
    environment["MESHPOST_SECRET"] = wrong;
    auto const error = error_of_job(environment);
    EXPECT_TRUE(says(error, Kind::bad_environment,
                     {"MESHPOST_SECRET has " + std::to_string(wrong.size()) + " characters",
                      "64 hexadecimal digits", "openssl rand -hex 32"}));
    EXPECT_EQ(std::string(error.what()).find(wrong), std::string::npos);
  }
}

class SecretFile : public testing::Test {
 protected:
  SecretFile() {
    std::string name = testing::TempDir() + "meshpost-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "secret").string();
    environment_ = ours;
    environment_.erase("MESHPOST_SECRET");
    environment_["MESHPOST_SECRET_FILE"] = path_;
  }
  ~SecretFile() override { std::filesystem::remove_all(folder_); }
  void write(std::string const& text, mode_t mode = 0600) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  std::filesystem::path folder_;
  std::string path_;
  Environment environment_;
};

TEST_F(SecretFile, is_read_with_or_without_an_end_of_line) {
  for (auto const* end : {"", "\n", "\r\n", " \n\n"}) {
    write(some_secret + end);
    EXPECT_EQ(job_of(environment_).secret, some_secret);
  }
  environment_["MESHPOST_SECRET"] = "";  // the same as not set
  EXPECT_EQ(job_of(environment_).secret, some_secret);
  environment_["MESHPOST_SECRET"] = std::string(64, 'b');
  EXPECT_EQ(job_of(environment_).secret, std::string(64, 'b'));
}

TEST_F(SecretFile, that_is_wrong_is_refused_and_not_printed) {
  auto const named = "MESHPOST_SECRET_FILE is '" + path_ + "'";
  auto const make = "umask 077; openssl rand -hex 32 >" + path_;
  EXPECT_TRUE(says(error_of_job(environment_), Kind::bad_environment,
                   {named, "there is no such file on this host", make}));
  write(some_secret, 0640);
  EXPECT_TRUE(says(error_of_job(environment_), Kind::bad_environment,
                   {named, "mode 640, not 600", "chmod 600 " + path_}));
  for (auto const& [wrong, found] : std::initializer_list<std::pair<std::string, std::string>>{
           {"hush hush", "has 9 characters"},
           {some_secret + "a", "has 65 characters"},
           {std::string(10'000, 'a'), "has 4096 characters or more"},
           {"\n" + some_secret, "has 65 characters"},
           {std::string(64, 'g'), "has other characters than hexadecimal digits"},
           {some_secret + '\0' + "tail", "has 69 characters"}}) {
    write(wrong);
    auto const error = error_of_job(environment_);
    EXPECT_TRUE(says(error, Kind::bad_environment,
                     {named, "the file " + found, "must have 64 hexadecimal digits", make}));
    EXPECT_EQ(std::string(error.what()).find(wrong.substr(0, 9)), std::string::npos);
  }
  for (auto const* nothing : {"", "\n"}) {
    write(nothing);
    EXPECT_TRUE(says(error_of_job(environment_), Kind::bad_environment,
                     {named, "the file is empty", "must have 64 hexadecimal digits", make}));
  }
  auto const other = (folder_ / "other").string();
  write(some_secret);
  std::filesystem::rename(path_, other);
  std::filesystem::create_symlink(other, path_);
  EXPECT_TRUE(says(error_of_job(environment_), Kind::bad_environment, {named, "symbolic link"}));
}

}  // namespace
}  // namespace meshpost
