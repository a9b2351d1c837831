#include "meshpost/base/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <utility>

#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

std::string value_of(char const* name, std::string_view fallback) {
  char const* const value = std::getenv(name);
  return value ? value : std::string(fallback);
}

[[noreturn]] void refuse(char const* name, std::string const& value, std::string_view allowed) {
  throw Error(Kind::bad_environment, name, "the value '" + value + "' is not understood",
              "it may be " + std::string(allowed));
}

unsigned number(char const* name, std::string_view fallback, unsigned long limit) {
  auto const text = value_of(name, fallback);
  auto const value = parse_number(text);
  if (!value || *value > limit)
    refuse(name, text, "a whole number from 0 to " + std::to_string(limit));
  return static_cast<unsigned>(*value);
}

std::chrono::milliseconds seconds(char const* name, std::string_view fallback) {
  auto const text = value_of(name, fallback);
  char* end = nullptr;
  double const value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= 1e6))
    refuse(name, text, "seconds from 0 (off) to 1000000, such as 30 or 0.5");
  return std::chrono::milliseconds(static_cast<long>(std::ceil(value * 1e3)));
}

// Characters to insert, to leave out or to replace, to get from one text to the other
// (Levenshtein).
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t before = std::exchange(row[0], i + 1);  // of the row above, one column to the left
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::size_t const replaced = before + (from[i] != to[j] ? 1 : 0);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, before + 1});
    }
  }
  return row.back();
}

constexpr std::string_view prefix = "MESHPOST_";

// Empty: there is none.
std::string_view nearest_to(std::string_view name) {
  std::string_view nearest;
  for (auto const& variable : variables()) {
    // Short names are near each other.
    std::size_t const most = variable.name.size() - prefix.size() <= 5 ? 1 : 2;
    auto const away = distance(name, variable.name);
    if (away == 0) return {};
    if (away <= most) nearest = variable.name;
  }
  return nearest;
}

}  // namespace

std::vector<std::string> misspelt_variables() {
  std::vector<std::string> all;
  for (char** one = environ; one && *one; ++one) {
    std::string_view const text(*one);
    auto const name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix)) continue;
    if (auto const meant = nearest_to(name); !meant.empty())
      all.push_back(std::string(name) + " is not read; is " + std::string(meant) + " meant?");
  }
  return all;
}

std::vector<Variable> const& variables() {
  static std::vector<Variable> const all = {
      {"MESHPOST_DEVICES",
       "devices of a World: cpu:4 (how many), cuda:0,1 (which), cuda (all), cuda:0*4 (each split "
       "in 4)",
       ""},
      {"MESHPOST_RANKS",
       "ranks of a device; 0: one a multiprocessor; on CPU devices 16 a core, at least 16 a device",
       "0"},
      {"MESHPOST_WORKERS",
       "worker threads that run the ranks of CPU devices; 0: one a core; beside GPUs of the World "
       "one less, "
       "of at least 4",
       "0"},
      {"MESHPOST_DEADLINE",
       "seconds without progress, while a rank waits, after which a run is ended; 0: never", "30"},
      {"MESHPOST_PEER_DEADLINE",
       "seconds without a sign of life after which another process of the job is lost; 0: never",
       "30"},
      {"MESHPOST_CHECK", "delivery: delay bytes until they are consumed and report early use (CPU)",
       ""},
      {"MESHPOST_LANES",
       "lanes of each rank for short messages, on GPUs at most 32; 0: none; empty: 32 on GPUs", ""},
      {"MESHPOST_TRACE", "file that the last run's timeline is written to, as Perfetto JSON", ""},
      {"MESHPOST_TRACE_EVENTS",
       "events that a timeline keeps for each rank, stream and thread of the host", "4096"},
      {"MESHPOST_TRACE_HOST",
       "file that the timeline of the host and its streams is written to, as Perfetto JSON", ""},
      {"MESHPOST_REPORT_SYNC",
       "1: report where the host waits between operations that it queues on devices", "0"},
      {"MESHPOST_PROCESSES", "processes of this job; meshpost-run, mpirun and srun set it", "1"},
      {"MESHPOST_PROCESS", "this process's number among them", "0"},
      {"MESHPOST_RENDEZVOUS", "host:port where process 0 listens, or file:PATH that holds it", ""},
      {"MESHPOST_SECRET_FILE", "file of mode 600 with the job's secret: openssl rand -hex 32", ""},
      {"MESHPOST_START_DEADLINE", "seconds in which all processes of a job must join; 0: no limit",
       "30"},
      {"MESHPOST_NODE", "processes with different names act as if they shared no memory", ""},
      {"MESHPOST_REACH", "device: ranks of different devices reach each other only by the host",
       ""},
      {"MESHPOST_NET",
       "engine between nodes, such as ofi, ofi:tcp or mpi; direct:ofi, staged:ofi: it reads and "
       "writes memory of GPUs itself, or not; empty: the best there is",
       ""},
      {"MESHPOST_DCUDA_MEMORY", "MiB for cudaMalloc in a dCUDA program of several processes",
       "64, on GPUs 1024"},
      {"MESHPOST_MACHINE", "file with this host's measured links; empty: one in the user's cache",
       ""},
  };
  return all;
}

Config Config::from_environment() {
  Config config;
  config.devices = value_of("MESHPOST_DEVICES", "");
  config.ranks = number("MESHPOST_RANKS", "0", 65536);
  config.workers = number("MESHPOST_WORKERS", "0", 4096);
  config.deadline = seconds("MESHPOST_DEADLINE", "30");
  config.peer_deadline = seconds("MESHPOST_PEER_DEADLINE", "30");
  auto const check = value_of("MESHPOST_CHECK", "");
  if (!check.empty() && check != "delivery") refuse("MESHPOST_CHECK", check, "'delivery' or empty");
  config.check_delivery = check == "delivery";
  auto const reach = value_of("MESHPOST_REACH", "");
  if (!reach.empty() && reach != "device") refuse("MESHPOST_REACH", reach, "'device' or empty");
  config.apart = reach == "device";
  if (!value_of("MESHPOST_LANES", "").empty()) config.lanes = number("MESHPOST_LANES", "", 1024);
  config.trace = value_of("MESHPOST_TRACE", "");
  config.trace_events = number("MESHPOST_TRACE_EVENTS", "4096", 1u << 24);
  config.trace_host = value_of("MESHPOST_TRACE_HOST", "");
  config.report_sync = number("MESHPOST_REPORT_SYNC", "0", 1) != 0;
  config.net = value_of("MESHPOST_NET", "");
  config.start = seconds("MESHPOST_START_DEADLINE", "30");
  config.dcuda_memory = number("MESHPOST_DCUDA_MEMORY", "0", 1u << 20);
  config.machine = value_of("MESHPOST_MACHINE", "");
  return config;
}

std::optional<unsigned long> parse_number(std::string_view text) {
  unsigned long value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool debugger_attached() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("TracerPid:", 0) == 0)
      return line.find_first_of("123456789") != std::string::npos;
  return false;
}

}  // namespace meshpost
