#include "plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "meshpost/base/error.hpp"

namespace meshpost::launch {

std::vector<std::string> way_from(std::string const& words) {
  std::istringstream text(words);
  std::vector<std::string> all;
  for (std::string word; text >> word;) all.push_back(word);
  if (all.empty())
    throw Error(Kind::bad_argument, "read --ssh", "it names no program",
                "name one that takes a host and a command, as ssh does");
  // ssh believes the first that it is told: the user's words win.
  if (all.front() == "ssh" || all.front().ends_with("/ssh"))
    all.insert(all.end(), {"-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"});
  return all;
}

void take_meeting(Plan& plan, std::string const& text) {
  auto const colon = text.rfind(':');
  auto const bracket = text.rfind(']');
  bool const address_alone = bracket == std::string::npos && text.find(':') != colon;  // IPv6
  bool const has_port = colon != std::string::npos && !address_alone &&
                        (bracket == std::string::npos || colon > bracket);
  plan.meeting_host = has_port ? text.substr(0, colon) : text;
  if (!has_port && !plan.meeting_host.empty()) return;
  auto const port = has_port ? text.substr(colon + 1) : "";
  auto const [end, status] =
      std::from_chars(port.data(), port.data() + port.size(), plan.meeting_port);
  if (status != std::errc() || end != port.data() + port.size() || plan.meeting_port < 1 ||
      plan.meeting_port > 65535)
    throw Error(
        Kind::bad_argument, "read --rendezvous",
        fmt::format("'{}' is no address of process 0's host", text),
        "write it as host, host:port or :port; an interface's name stands for its addresses");
}

}  // namespace meshpost::launch
