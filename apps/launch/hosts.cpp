#include "hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "options.hpp"
#include "system.hpp"

namespace meshpost::launch {
namespace {

constexpr char const* how = "write hosts as a,b:4,c; in a file a line each, as: a slots=4";

[[noreturn]] void refuse(std::string const& operation, std::string const& cause) {
  throw Error(Kind::bad_argument, operation, cause, how);
}

u32 slots_from(std::string const& text, std::string const& operation) {
  u32 value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value == 0 ||
      value > most_processes)
    refuse(operation, fmt::format("'{}' is no number of slots, a whole one from 1 to {}", text,
                                  most_processes));
  return value;
}

// "a", "a:4"; of addresses with colons "[::1]:4", and "::1", which has no slots behind it.
Host host_from(std::string const& text, std::string const& operation) {
  auto const colon = text.rfind(':');
  bool const bracketed = text.find('[') != std::string::npos;
  bool const has_slots = colon != std::string::npos &&
                         (bracketed ? text[colon - (colon > 0)] == ']' : text.find(':') == colon);
  Host host{has_slots ? text.substr(0, colon) : text,
            has_slots ? slots_from(text.substr(colon + 1), operation) : 0};
  if (bracketed) std::erase_if(host.name, [](char c) { return c == '[' || c == ']'; });
  if (host.name.empty()) refuse(operation, fmt::format("'{}' names no host", text));
  if (host.name.front() == '-')  // ssh would take it for an option
    refuse(operation, fmt::format("'{}' is no host: no name begins with '-'", host.name));
  if (host.name.find_first_of(" \t\n'\"\\$`;&|<>()*?!{}") != std::string::npos)
    refuse(operation, fmt::format("'{}' is no host's name", host.name));
  return host;
}

// One that was named before gets the slots of both; without a number each naming is one.
void add(std::vector<Host>& hosts, Host const& host) {
  auto const before =
      std::ranges::find_if(hosts, [&](auto const& one) { return one.name == host.name; });
  if (before == hosts.end()) hosts.push_back(host);
  else before->slots = std::max(before->slots, 1u) + std::max(host.slots, 1u);
}

}  // namespace

std::vector<Host> read_hosts(std::string const& list) {
  std::vector<Host> hosts;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');)
    add(hosts, host_from(entry, "read --hosts"));
  if (hosts.empty() || list.back() == ',') refuse("read --hosts", "'' names no host");
  return hosts;
}

std::vector<Host> read_hostfile(std::string const& path) {
  std::ifstream file(path);
  if (!file)
    throw Error(Kind::bad_argument, fmt::format("read --hostfile {}", path), std::strerror(errno),
                "name a file that you may read");
  std::vector<Host> hosts;
  u32 number = 0;
  for (std::string line; std::getline(file, line);) {
    auto const operation = fmt::format("read --hostfile {}, line {}", path, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    auto host = host_from(word, operation);
    while (words >> word) {
      if (word.starts_with("slots=")) host.slots = slots_from(word.substr(6), operation);
      else if (word.starts_with("max_slots=") || word.starts_with("max-slots=")) continue;
      else refuse(operation, fmt::format("'{}' is not understood", word));
    }
    add(hosts, host);
  }
  if (hosts.empty()) refuse(fmt::format("read --hostfile {}", path), "it names no host");
  return hosts;
}

std::vector<u32> place(std::vector<Host> const& hosts, u32 processes) {
  bool const limited = std::ranges::any_of(hosts, [](auto const& one) { return one.slots > 0; });
  u32 slots = 0;
  for (auto const& host : hosts) slots += std::max(host.slots, 1u);
  u32 const count = processes == 0 ? slots : processes;
  std::vector<u32> all;
  if (!limited) {
    auto const blocks = std::min(static_cast<u32>(hosts.size()), count);
    for (u32 k = 0; k < count; ++k) all.push_back(block_of(k, count, blocks));
    return all;
  }
  if (count > slots)
    throw Error(Kind::bad_argument, "place the processes",
                fmt::format("{} of -n are more than the {} slots of the hosts", count, slots),
                "give hosts more slots, as in a:4, or name more of them");
  for (u32 host = 0; host < hosts.size(); ++host)
    for (u32 slot = 0; slot < std::max(hosts[host].slots, 1u) && all.size() < count; ++slot)
      all.push_back(host);
  return all;
}

}  // namespace meshpost::launch
