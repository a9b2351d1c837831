#include "spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>

namespace meshpost::launch {
namespace {

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw NotStarted(system_error("pipe", "raise ulimit -n, or ask for fewer with -n"), 1);
  return {Fd(ends[0]), Fd(ends[1])};
}

void never_wait(Fd const& fd) {  // only the reader or the writer has an end of a pipe
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::vector<char*> pointers(std::vector<std::string> const& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (auto const& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

struct Ends {
  int input, output, errors, report;
};

// Runs in the child. Writes an errno to `report` if it can't execute the program.
[[noreturn]] void become(Spawn const& spawn, Ends ends, pid_t launcher) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // the launcher died before the prctl
  // Ignored and blocked signals of this process, also inherited ones, must not affect the program.
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setrlimit(RLIMIT_NOFILE, &spawn.files);
  if (spawn.input == Input::nothing) ends.input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (spawn.input != Input::inherited) ::dup2(ends.input, 0);
  ::dup2(ends.output, 1);
  ::dup2(ends.errors, 2);
  if (spawn.listener >= 0) ::fcntl(spawn.listener, F_SETFD, 0);
  auto const arguments = pointers(spawn.command), environment = pointers(spawn.environment);
  environ = const_cast<char**>(environment.data());  // the program is looked up in its PATH
  ::execvp(arguments[0], arguments.data());
  int const number = errno;
  if (::write(ends.report, &number, sizeof number) < 0) ::_exit(1);
  ::_exit(127);
}

NotStarted why_not(std::string const& program, int number) {
  auto const operation = fmt::format("start '{}'", program);
  auto const error = [&](char const* cause, char const* remedy, int status) {
    return NotStarted({Kind::bad_environment, operation, cause, remedy}, status);
  };
  bool const by_path = program.find('/') != std::string::npos;
  struct stat about{};
  bool const there = by_path && ::stat(program.c_str(), &about) == 0;
  if (number == ENOENT && there)
    return error("the interpreter that it names does not exist",
                 "correct its first line (#!), or build it for this host", 127);
  if (number == ENOENT && by_path) return error("there is no such file", "correct the path", 127);
  if (number == ENOENT)
    return error("no folder of PATH has it", "correct the name, or give a path, as ./ring", 127);
  if (number == EACCES && there && S_ISDIR(about.st_mode))
    return error("it is a folder", "name the program in it", 126);
  if (number == EACCES)
    return error("it may not be executed", "chmod +x it, or name another program", 126);
  if (number == E2BIG)
    return error("arguments and environment are too long together", "shorten them", 126);
  return error(std::strerror(number), "make it run on this host without meshpost-run first", 126);
}

}  // namespace

Child start(Spawn const& spawn) {
  auto output = make_pipe(), errors = make_pipe(), report = make_pipe();
  Pipe input;
  if (spawn.input == Input::pipe) input = make_pipe();
  pid_t const launcher = ::getpid(), pid = ::fork();
  if (pid < 0)
    throw NotStarted(
        system_error("fork", "raise the limit of processes (ulimit -u), or ask for fewer with -n"),
        1);
  if (pid == 0)
    become(spawn, {input.read.get(), output.write.get(), errors.write.get(), report.write.get()},
           launcher);
  ::setpgid(pid, pid);  // parent and child both call it; the first one counts
  report.write.close();
  int number = 0;
  ssize_t size = 0;
  while ((size = ::read(report.read.get(), &number, sizeof number)) < 0 && errno == EINTR) continue;
  if (size == sizeof number) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    throw why_not(spawn.command.front(), number);
  }
  never_wait(output.read);
  never_wait(errors.read);
  if (input.write) never_wait(input.write);
  return {pid, std::move(output.read), std::move(errors.read), std::move(input.write)};
}

}  // namespace meshpost::launch
