#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>

#include "environment.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::launch {
namespace {

constexpr u32 most_processes = 512;
constexpr double longest_timeout = 1e8;  // three years; keeps the argument of poll() in range

// Options of former versions and of other launchers, with their replacements.
struct Gone {
  std::string_view option;
  char const* cause;
  char const* remedy;
};
constexpr char const* one_host = "meshpost-run starts processes of this host only";
constexpr char const* launchers =
    "start the program on several hosts by mpirun, mpiexec, srun or meshpost-over-ssh";
constexpr char const* its_n = "meshpost-run calls the number of processes -n";
constexpr char const* as_n = "write it as in: meshpost-run -n 4 ./ring";
constexpr Gone gone[] = {
    {"-np", its_n, as_n},
    {"--np", its_n, as_n},
    {"-H", one_host, launchers},
    {"-host", one_host, launchers},
    {"--host", one_host, launchers},
    {"-hosts", one_host, launchers},
    {"--hosts", one_host, launchers},
    {"-hostfile", one_host, launchers},
    {"--hostfile", one_host, launchers},
    {"-machinefile", one_host, launchers},
    {"--machinefile", one_host, launchers},
    {"--ssh", one_host, launchers},
    {"--launcher", one_host, launchers},
    {"--rendezvous", one_host, launchers},
    {"--lost-after", one_host, "leave it out; MESHPOST_PEER_DEADLINE says when a process is lost"},
    {"-x", "all processes have the variables that are set here", "leave it out"},
    {"--wdir", "processes start in the folder of meshpost-run", "cd there first"},
};

constexpr char const* examples =
    "Examples:\n"
    "  meshpost-run -n 4 ./ring                       four processes of this program\n"
    "  meshpost-run -n 4 --env MESHPOST_DEVICES=cpu:2 ./ring --its-own-option\n"
    "  meshpost-run -n 8 --nodes 2 ./ring             as if four ran on each of two hosts\n"
    "  meshpost-run -n 4 --logs out/logs --timeout 60 -- ./ring\n"
    "\n"
    "Programs are started on several hosts by mpirun, mpiexec, srun or meshpost-over-ssh.\n"
    "\n"
    "When a process fails the others are ended, and the exit status is that of the first one that\n"
    "failed (128 and the signal's number where a signal ended it). 2: a wrong argument; 1: the "
    "job\n"
    "could not be started; 124: --timeout; 126: the program can't be run; 127: there is none.\n"
    "SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to all processes; the same signal again\n"
    "kills them.";

// CLI11 does not know that a program follows the options.
class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(CLI::App const* /*app*/, std::string /*name*/) const override {
    return "usage: meshpost-run [-n N] [options] [--] program [arguments...]\n";
  }
};

u32 whole(std::string const& text, std::string const& option, char const* what) {
  u32 value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value == 0 ||
      value > most_processes)
    throw Error(Kind::bad_argument, "read " + option,
                fmt::format("'{}' is not a number of {}", text, what),
                fmt::format("give a whole number from 1 to {}", most_processes));
  return value;
}

double seconds_from(std::string const& text, std::string const& option) {
  double value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !(value > 0) ||
      value > longest_timeout)
    throw Error(
        Kind::bad_argument, "read " + option, fmt::format("'{}' is not a time", text),
        "give seconds, more than 0 and at most 1e8, as 90 or 0.5; leave it out for no limit");
  return value;
}

void check_variable(std::string const& text) {
  auto const name = text.substr(0, text.find('='));
  if (name.empty() || name.size() == text.size())
    throw Error(Kind::bad_argument, "read --env", fmt::format("'{}' sets no variable", text),
                "write it as NAME=VALUE; variables that are set here need no --env");
  if (is_of_the_job(name))
    throw Error(Kind::bad_argument, "read --env", fmt::format("{} is set by meshpost-run", name),
                "leave it out; -n and --nodes decide such variables");
}

void refuse_what_is_gone(std::string_view word) {
  for (auto const& [option, cause, remedy] : gone)
    if (word == option || word.starts_with(fmt::format("{}=", option)))
      throw Error(Kind::bad_argument, fmt::format("read {}", option), cause, remedy);
}

// The position of the program in argv: behind the options and their values, or behind "--".
int program_at(CLI::App const& app, int argc, char** argv) {
  int at = 1;
  for (; at < argc; ++at) {
    std::string const word = argv[at];
    if (word == "--" || word.size() < 2 || word[0] != '-') break;
    refuse_what_is_gone(word);
    auto const* const option = app.get_option_no_throw(word);
    if (option != nullptr && option->get_expected_max() > 0) ++at;  // its value is the next word
  }
  return std::min(at, argc);
}

void check(Options const& options) {
  for (auto const& variable : options.variables) check_variable(variable);
  if (options.nodes > options.processes)
    throw Error(
        Kind::bad_argument, "read --nodes",
        fmt::format("{} nodes are more than the {} of -n", options.nodes,
                    options.processes == 1 ? "one process"
                                           : fmt::format("{} processes", options.processes)),
        fmt::format("give at most {} nodes, or more processes", options.processes));
  if (options.command.empty() || options.command.front().empty())
    throw Error(Kind::bad_argument, "read the command line", "it names no program",
                "write it behind the options, as in: meshpost-run -n 4 ./ring; see --help");
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app{"Starts a program in several processes on this host, which find each other",
               "meshpost-run"};
  app.formatter(std::make_shared<Formatter>());
  app.footer(examples);
  std::string processes, nodes, timeout;
  app.add_option("-n", processes,
                 fmt::format("how many processes, 1 to {}; default: 1", most_processes))
      ->type_name("N");
  app.add_option("--env", options.variables, "set a variable for every process; may be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  bool no_label = false;
  app.add_flag("--no-label", no_label, "print lines without the number of their process");
  app.add_option("--logs", options.logs, "also write what process k prints to DIR/process-k.log")
      ->type_name("DIR");
  app.add_option("--timeout", timeout, "end the job after so long; exit status 124")
      ->type_name("SECONDS");
  app.add_option("--nodes", nodes, "spread the processes in blocks over K pretended nodes")
      ->type_name("K");
  try {
    int const end = program_at(app, argc, argv);
    app.parse(end, argv);
    options.label = !no_label;
    if (!processes.empty()) options.processes = whole(processes, "-n", "processes");
    if (!nodes.empty()) options.nodes = whole(nodes, "--nodes", "nodes");
    if (!timeout.empty()) options.timeout = seconds_from(timeout, "--timeout");
    int const first = end < argc && std::string(argv[end]) == "--" ? end + 1 : end;
    options.command.assign(argv + first, argv + argc);
    check(options);
    return std::nullopt;
  } catch (CLI::Success const& help) {
    return app.exit(help);
  } catch (CLI::ParseError const& error) {
    fmt::print(stderr, "meshpost-run: read the command line: {}; see meshpost-run --help\n",
               error.what());
  } catch (Error const& error) {
    fmt::print(stderr, "meshpost-run: {}\n", error.what());
  }
  return 2;
}

}  // namespace meshpost::launch
