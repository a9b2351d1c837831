#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "environment.hpp"
#include "meshpost/base/error.hpp"
#include "surroundings.hpp"

namespace meshpost::launch {
namespace {

constexpr double longest_timeout = 1e8;  // three years; what poll() is asked for stays a number

constexpr char const* start_variable =
    "MESHPOST_START_DEADLINE";  // the library's, with its default

constexpr char const* examples =
    "Examples:\n"
    "  meshpost-run -n 4 ./ring                       four processes of this program\n"
    "  meshpost-run -n 4 --env MESHPOST_DEVICES=cpu:2 ./ring --its-own-option\n"
    "  meshpost-run -n 8 --nodes 2 ./ring             as if four ran on each of two hosts\n"
    "  meshpost-run -n 4 --logs out/logs --timeout 60 -- ./ring\n"
    "  meshpost-run --hosts a,b:2 -x LD_LIBRARY_PATH ./ring    one on host a, two on b, by ssh\n"
    "  meshpost-run --hostfile hosts -n 8 --rendezvous ib0 ./ring\n"
    "\n"
    "On other hosts the program, the folder and meshpost-run must lie where they lie here "
    "(--wdir,\n"
    "--launcher), and ssh must not ask anything. Processes there get the environment of a shell "
    "of\n"
    "ssh, all MESHPOST_... that are set here, and what -x names.\n"
    "\n"
    "When a process fails the others are ended, and the exit status is that of the first one that\n"
    "failed (128 and the signal's number where a signal ended it). 2: a wrong argument; 1: the "
    "job\n"
    "could not be started, or a host was lost; 124: --timeout; 126: the program can't be run; 127: "
    "there is none.\n"
    "SIGINT, SIGTERM and SIGHUP are passed on to all processes; the same signal again kills them.";

// CLI11 does not know of the program behind the options.
class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(CLI::App const* /*app*/, std::string /*name*/) const override {
    return "usage: meshpost-run [-n N] [options] [--] program [arguments...]\n";
  }
};

u32 whole(std::string const& text, std::string const& option, char const* what,
          u32 most = most_processes) {
  u32 value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value == 0 || value > most)
    throw Error(Kind::bad_argument, "read " + option,
                fmt::format("'{}' is no number of {}", text, what),
                fmt::format("give a whole number from 1 to {}", most));
  return value;
}

double seconds(std::string const& text, std::string const& option) {
  double value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !(value > 0) ||
      value > longest_timeout)
    throw Error(
        Kind::bad_argument, "read " + option, fmt::format("'{}' is no time", text),
        "give seconds, more than 0 and at most 1e8, as 90 or 0.5; leave it out for the default");
  return value;
}

// NAME stands for the value that it has here.
void complete_variable(std::string& text) {
  auto const name = text.substr(0, text.find('='));
  char const* const value = std::getenv(name.c_str());
  if (name.empty() || (name.size() == text.size() && value == nullptr))
    throw Error(Kind::bad_argument, "read --env",
                fmt::format("'{}' names no variable that is set here", text),
                "write it as NAME=VALUE, or set it");
  if (is_of_the_job(name))
    throw Error(Kind::bad_argument, "read --env", fmt::format("{} is set by meshpost-run", name),
                "leave it out; -n, --hosts and --nodes decide such variables");
  if (name.size() == text.size()) text += fmt::format("={}", value);
}

// Where the program stands in argv: behind the options and their values, or behind "--".
int program_at(CLI::App const& app, int argc, char** argv) {
  int at = 1;
  for (; at < argc; ++at) {
    std::string const word = argv[at];
    if (word == "--" || word.size() < 2 || word[0] != '-') break;
    auto const* const option = app.get_option_no_throw(word);
    if (option != nullptr && option->get_expected_max() > 0) ++at;  // its value is the next word
  }
  return std::min(at, argc);
}

// What the command line says of hosts, as it was typed.
struct OfHosts {
  std::string hosts, hostfile, ssh, launcher, rendezvous, lost_after;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::clamp<i64>(static_cast<i64>(seconds * 1000), 100, INT_MAX));
}

void take_hosts(Plan& plan, OfHosts const& typed) {
  if (!typed.hosts.empty() && !typed.hostfile.empty())
    throw Error(Kind::bad_argument, "read --hosts", "--hostfile is given as well", "give one");
  if (!typed.hosts.empty()) plan.hosts = read_hosts(typed.hosts);
  if (!typed.hostfile.empty()) plan.hosts = read_hostfile(typed.hostfile);
  for (auto const& [option, value] : {std::pair("--ssh", &typed.ssh),
                                      {"--launcher", &typed.launcher},
                                      {"--rendezvous", &typed.rendezvous},
                                      {"--lost-after", &typed.lost_after}})
    if (plan.here() && !value->empty())
      throw Error(Kind::bad_argument, fmt::format("read {}", option), "there are no other hosts",
                  "name some with --hosts or --hostfile, or leave it out");
  if (plan.here()) return;
  char const* const set = std::getenv(ssh_variable);
  plan.direct = typed.ssh.empty() && (set == nullptr || *set == '\0');
  plan.way = way_from(!typed.ssh.empty() ? typed.ssh : plan.direct ? "ssh" : set);
  plan.launcher = typed.launcher.empty() ? own_program() : typed.launcher;
  if (!typed.rendezvous.empty()) take_meeting(plan, typed.rendezvous);
  plan.silence =
      milliseconds(typed.lost_after.empty() ? 60 : seconds(typed.lost_after, "--lost-after"));
  char const* const start = std::getenv(start_variable);
  if (start == nullptr || *start == '\0') plan.patience = std::chrono::seconds(30);
  else if (std::string_view(start) != "0")
    plan.patience = milliseconds(seconds(start, start_variable));
}

void check(Options& options) {
  for (auto& variable : options.variables) complete_variable(variable);
  if (options.nodes > 0 && !options.plan.here())
    throw Error(Kind::bad_argument, "read --nodes",
                "it pretends hosts, and --hosts names real ones", "give one of the two");
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
  CLI::App app{
      "Starts a program in several processes, on this host or on others, which find each other",
      "meshpost-run"};
  app.formatter(std::make_shared<Formatter>());
  app.footer(examples);
  std::string processes, nodes, timeout;
  OfHosts of_hosts;
  app.add_option("-n", processes,
                 fmt::format("how many processes, 1 to {} on a host; default: 1, or as many as the "
                             "hosts have slots",
                             most_processes))
      ->type_name("N");
  app.add_option(
         "--hosts", of_hosts.hosts,
         "hosts to start them on, in order, with slots where a host takes no more than that; "
         "without slots they get blocks of equal size")
      ->type_name("A,B:2,...");
  app.add_option("--hostfile", of_hosts.hostfile,
                 "the same from a file, a host a line, as 'a slots=2'")
      ->type_name("FILE");
  app.add_option(
         "--ssh", of_hosts.ssh,
         "command that takes a host's name and a command for it; default: $MESHPOST_SSH, ssh")
      ->type_name("COMMAND");
  app.add_option("--launcher", of_hosts.launcher,
                 "meshpost-run on the hosts; default: where this one is")
      ->type_name("PATH");
  app.add_option("--rendezvous", of_hosts.rendezvous,
                 "address or interface of the first host where the processes meet, and its port; "
                 "default: an address that all hosts reach")
      ->type_name("HOST[:PORT]");
  app.add_option("--lost-after", of_hosts.lost_after,
                 "a host that is silent for so long is lost; default: 60")
      ->type_name("SECONDS");
  app.add_option(
         "--env,-x", options.variables,
         "set a variable for every process, or pass on the value it has here; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all();
  app.add_option("--wdir", options.folder, "folder to start in, as after cd DIR")->type_name("DIR");
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
    take_hosts(options.plan, of_hosts);
    auto const hosts = std::max<std::size_t>(options.plan.hosts.size(), 1);
    if (!processes.empty())
      options.processes =
          whole(processes, "-n", "processes", most_processes * static_cast<u32>(hosts));
    if (!options.plan.here()) {
      options.plan.host_of = place(options.plan.hosts, processes.empty() ? 0 : options.processes);
      options.processes = static_cast<u32>(options.plan.host_of.size());
    }
    if (!nodes.empty()) options.nodes = whole(nodes, "--nodes", "nodes");
    if (!timeout.empty()) options.timeout = seconds(timeout, "--timeout");
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
