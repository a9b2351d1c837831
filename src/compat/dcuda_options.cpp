#include "compat/dcuda_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <map>
#include <string_view>

#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::compat {
namespace {

struct Option {
  char short_name;
  std::string_view name;
  bool has_value;
};
constexpr std::array<Option, 5> known_options = {{{'d', "dev_id", true},
                                                  {'p', "proc_id", true},
                                                  {'n', "n_procs", true},
                                                  {'r', "root_name", true},
                                                  {'l', "is_root", false}}};

[[noreturn]] void refuse(std::string cause) {
  throw Error(Kind::bad_argument, "dcuda_host_init", std::move(cause),
              "-d, -p, -n, -r and -l are dCUDA's own; put your program's options behind --, or "
              "pass argc 0");
}

unsigned long number(Option const& option, std::string_view value) {
  auto const found = parse_number(value);
  if (!found || *found > INT_MAX)
    refuse(fmt::format("--{} needs a number, not '{}'", option.name, value));
  return *found;
}

// The option that `word` stands for ("-d", "--dev_id", "--dev_id=1"), and its value if that is in
// the same word.
Option const* match(std::string_view word, std::optional<std::string_view>& value) {
  for (auto const& option : known_options) {
    if (word.size() == 2 && word[0] == '-' && word[1] == option.short_name) return &option;
    if (!word.starts_with("--") || !word.substr(2).starts_with(option.name)) continue;
    auto const rest = word.substr(2 + option.name.size());
    if (rest.empty()) return &option;
    if (rest[0] != '=' || !option.has_value) continue;
    value = rest.substr(1);
    return &option;
  }
  return nullptr;
}

}  // namespace

DcudaOptions parse_dcuda_options(int argc, char const* const* argv) {
  DcudaOptions result;
  unsigned long processes = 1, process = 0;
  bool leads = false;
  for (int i = 1; argv && i < argc && argv[i]; ++i) {
    std::string_view const word = argv[i];
    if (word == "--") break;
    std::optional<std::string_view> value;
    Option const* const option = match(word, value);
    if (!option) continue;
    if (option->has_value && !value) {
      if (i + 1 >= argc || !argv[i + 1]) refuse(fmt::format("nothing follows {}", word));
      value = argv[++i];
    }
    switch (option->short_name) {
      case 'd': result.device = static_cast<u32>(number(*option, *value)); break;
      case 'n': processes = number(*option, *value); break;
      case 'p': process = number(*option, *value); break;
      case 'r': result.leader = *value; break;
      default: leads = true; break;
    }
  }
  if (processes == 0) refuse("0 processes were asked for (-n)");
  if (process >= processes)
    refuse(fmt::format("process {} was named (-p), but there are {}: 0 to {} (-n)", process,
                       processes, processes - 1));
  if (leads && process != 0)
    refuse(fmt::format("process {} is to lead (-l); only process 0 can", process));
  result.processes = static_cast<u32>(processes);
  result.process = static_cast<u32>(process);
  return result;
}

Variables variables_of(DcudaOptions const& options, Variables const& around) {
  std::map<std::string, std::string> own{{"MESHPOST_LAUNCHER", "the option -n"},
                                         {"MESHPOST_PROCESSES", std::to_string(options.processes)},
                                         {"MESHPOST_PROCESS", std::to_string(options.process)}};
  if (!around("MESHPOST_RENDEZVOUS")) {
    bool const here = options.leader.empty() || options.leader == "localhost";
    bool const has_port = options.leader.find(':') != std::string::npos;
    own["MESHPOST_RENDEZVOUS"] =
        here       ? fmt::format("file:/tmp/meshpost-{}-dcuda-{}", geteuid(), getsid(0))
        : has_port ? options.leader
                   : fmt::format("{}:{}", options.leader, dcuda_port);
  }
  return [own = std::move(own), around](char const* name) {
    auto const found = own.find(name);
    return found == own.end() ? around(name) : found->second.c_str();
  };
}

}  // namespace meshpost::compat
