#include "world/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"
#include "world/secret.hpp"

namespace meshpost {
namespace {

// How each launcher names what we need. All processes are on one host if the variable `here` equals
// `whole` (a variable's name or a number). `identity` differs between jobs of one user on one host.
struct Launcher {
  char const *name, *process, *processes, *here, *whole, *identity;
};
constexpr Launcher launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE", "PMI_JOBID"},
    // Not SLURM_NTASKS: a batch script has it too, but is a single process.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "1", "SLURM_JOB_ID"},
};
constexpr u32 most_processes = 65536;

class Reader {
 public:
  explicit Reader(Variables const& variables) : variables_(variables) {}

  std::string text(char const* name) const {
    char const* const value = variables_(name);
    return value ? value : "";
  }
  bool has(char const* name) const { return variables_(name) != nullptr; }
  [[noreturn]] void refuse(char const* name, std::string const& cause,
                           std::string remedy = "use meshpost-run, or set it by hand") const {
    throw Error(Kind::bad_environment, "join the job",
                fmt::format("{} is '{}': {}", name, text(name), cause), std::move(remedy));
  }
  u32 number(char const* name, u32 least, u32 most) const {
    auto const value = parse_number(text(name));
    if (!value || *value < least || *value > most)
      refuse(name, fmt::format("it may be a whole number from {} to {}", least, most));
    return static_cast<u32>(*value);
  }

 private:
  Variables const& variables_;
};

void take_numbers(Job& job, Reader const& read, char const* process, char const* processes) {
  job.processes = read.number(processes, 1, most_processes);
  job.process = read.number(process, 0, job.processes - 1);
}

// The launcher's name for the job. With Slurm also for the step: a job may have several at a time.
// Empty if the job has no name, because each of Slurm's jobs has a step 0.
std::string identity_of(Reader const& read, Launcher const& launcher) {
  constexpr std::size_t longest = 100;
  std::string identity = read.text(launcher.identity);
  if (identity.empty()) return identity;
  if (read.has("SLURM_STEP_ID")) identity += '-' + read.text("SLURM_STEP_ID");
  return identity.substr(identity.size() - std::min(identity.size(), longest));
}

// The nearest ancestor without `variable`: it has set the variable for all processes of the job.
// There may be shells between.
pid_t starter(std::string const& variable) {
  for (pid_t process = getppid();;) {
    std::ifstream environment(fmt::format("/proc/{}/environ", process));
    bool set = false;
    for (std::string one; !set && std::getline(environment, one, '\0');)
      set = one.starts_with(variable + '=');
    std::ifstream status(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(status, text);
    auto const name_ends = text.rfind(") ");  // "PID (NAME) STATE PARENT ..."
    if (!set || name_ends == std::string::npos || name_ends + 4 >= text.size()) return process;
    pid_t parent = 0;
    std::from_chars(text.data() + name_ends + 4, text.data() + text.size(), parent);
    if (parent <= 1) return process;
    process = parent;
  }
}

// Launchers that do not know meshpost pass no address. So process 0 writes it to a file of this
// host.
std::string meeting_file(Reader const& read, Launcher const& launcher) {
  auto identity = identity_of(read, launcher);
  if (identity.empty()) identity = std::to_string(starter(launcher.process));
  for (char& c : identity)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  // srun passes on the variable of the host where it was called. Here that folder may not exist.
  auto const folder = read.text("XDG_RUNTIME_DIR");
  bool const usable =
      !folder.empty() && faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  return fmt::format("file:{}/meshpost-{}-{}", usable ? folder : "/tmp", geteuid(), identity);
}

// Some (Slurm's PMI) don't tell the hosts. Slurm itself does, if it started the processes.
bool on_several_hosts(Reader const& read, Launcher const& launcher) {
  if (!read.has(launcher.here))
    return read.has("SLURM_STEP_NUM_NODES") && read.text("SLURM_STEP_NUM_NODES") != "1";
  return read.text(launcher.here) !=
         (read.has(launcher.whole) ? read.text(launcher.whole) : launcher.whole);
}

void take_rendezvous(Job& job, Reader const& read) {
  job.rendezvous = read.text("MESHPOST_RENDEZVOUS");
  if (job.rendezvous == "file:" || !job.rendezvous.starts_with("file:")) {
    auto const colon = job.rendezvous.rfind(':');
    auto const port =
        colon == std::string::npos ? std::nullopt : parse_number(job.rendezvous.substr(colon + 1));
    if (colon == 0 || !port || *port == 0 || *port > 65535)
      read.refuse("MESHPOST_RENDEZVOUS",
                  "it may be host:port, where process 0 listens, or file:PATH",
                  "use meshpost-run, or an address that process 0 can listen at");
  }
  if (job.process == 0 && read.has("MESHPOST_LISTENER"))
    job.listener = static_cast<int>(read.number("MESHPOST_LISTENER", 3, 1u << 20));
}

// Errors tell only the length of the file, not its content.
std::string secret_in_file(Reader const& read) {
  constexpr auto name = "MESHPOST_SECRET_FILE";
  auto const path = read.text(name);
  auto const make = fmt::format("umask 077; openssl rand -hex 32 >{}", path);
  std::string secret;
  try {
    secret = read_private_file(path);
  } catch (Error const& error) {
    read.refuse(name, error.cause(),
                fmt::format("{}; all processes need the same secret, which `{}` makes",
                            error.remedy(), make));
  }
  while (!secret.empty() && std::isspace(static_cast<unsigned char>(secret.back())))
    secret.pop_back();
  if (Secret::from_hex(secret)) return secret;
  auto const found = secret.empty() ? "the file is empty"
                     : secret.size() == Secret::digits
                         ? "the file has other characters than hexadecimal digits"
                     : secret.size() >= most_of_private_file
                         ? fmt::format("the file has {} characters or more", most_of_private_file)
                         : fmt::format("the file has {} characters", secret.size());
  read.refuse(name, fmt::format("{}; it must have {} hexadecimal digits", found, Secret::digits),
              fmt::format("make it anew by `{}`, the same for all processes", make));
}

void take_secret(Job& job, Reader const& read) {
  job.secret = read.text("MESHPOST_SECRET");
  if (job.secret.empty() && !read.text("MESHPOST_SECRET_FILE").empty())
    job.secret = secret_in_file(read);
  if (job.secret.empty() && !job.rendezvous.starts_with("file:"))
    throw Error(
        Kind::bad_environment, "join the job",
        fmt::format("it has {} processes at {} and no secret", job.processes, job.rendezvous),
        "set MESHPOST_SECRET_FILE to a file of mode 600 with what `openssl rand -hex 32` "
        "prints, the same for all processes");
  if (!job.secret.empty() && !Secret::from_hex(job.secret))  // and don't print it
    throw Error(Kind::bad_environment, "join the job",
                fmt::format("MESHPOST_SECRET has {} characters, not 64 hexadecimal digits",
                            job.secret.size()),
                "use what `openssl rand -hex 32` prints");
}

}  // namespace

Job job_from(Variables const& variables) {
  Reader const read(variables);
  Job job;
  job.node = read.text("MESHPOST_NODE");
  auto const config = Config::from_environment();
  job.timeout = config.start;
  job.silence = config.peer_deadline;
  if (read.has("MESHPOST_PROCESSES") || read.has("MESHPOST_PROCESS")) {
    job.launcher =
        read.has("MESHPOST_LAUNCHER") ? read.text("MESHPOST_LAUNCHER") : "MESHPOST_PROCESSES";
    take_numbers(job, read, "MESHPOST_PROCESS", "MESHPOST_PROCESSES");
    if (job.alone()) return job;
    take_rendezvous(job, read);
    take_secret(job, read);
    return job;
  }
  for (auto const& launcher : launchers) {
    if (!read.has(launcher.process) || !read.has(launcher.processes)) continue;
    job.launcher = launcher.name;
    take_numbers(job, read, launcher.process, launcher.processes);
    if (job.alone()) return job;
    // In a heterogeneous job of Slurm each part has a number of its own.
    if (!read.has("SLURM_HET_SIZE") && !read.has("SLURM_HET_JOB_ID"))
      job.identity = identity_of(read, launcher);
    if (read.has("MESHPOST_RENDEZVOUS")) {
      take_rendezvous(job, read);
    } else {
      if (on_several_hosts(read, launcher))
        throw Error(Kind::bad_environment, "join the job",
                    fmt::format("{} started {} processes on several hosts, and nobody said where "
                                "they meet",
                                launcher.name, job.processes),
                    "set MESHPOST_RENDEZVOUS to host:port, where process 0 can listen, and "
                    "MESHPOST_SECRET_FILE to a file of mode 600, the same for all processes");
      job.rendezvous = meeting_file(read, launcher);
    }
    take_secret(job, read);
    return job;
  }
  return job;
}

}  // namespace meshpost
