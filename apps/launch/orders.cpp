#include "orders.hpp"

#include <charconv>

#include "frames.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::launch {
namespace {

constexpr std::size_t before_variables = 5;

u32 number(std::string const& text) {
  u32 value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string pack(Orders const& orders) {
  auto const& job = orders.job;
  std::vector<std::string> all{std::to_string(job.processes), job.rendezvous, job.secret,
                               orders.folder, std::to_string(job.variables.size())};
  all.insert(all.end(), job.variables.begin(), job.variables.end());
  all.insert(all.end(), orders.command.begin(), orders.command.end());
  return pack_list(all);
}

Orders unpack_orders(std::string const& text) {
  auto const all = unpack_list(text);
  auto const variables = all.size() > before_variables ? number(all[before_variables - 1]) : 0;
  if (all.size() <= before_variables + variables)
    throw Error(Kind::bad_argument, "read the launcher's orders", "they are incomplete",
                "start agents by meshpost-run --hosts");
  auto const behind = all.begin() + before_variables;
  return {{number(all[0]), 0, all[1], all[2], {behind, behind + variables}},
          all[3],
          {behind + variables, all.end()}};
}

}  // namespace meshpost::launch
