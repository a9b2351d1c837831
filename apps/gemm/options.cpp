#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include "meshpost/base/error.hpp"

namespace meshpost::gemm {
namespace {

constexpr u64 largest = u64{1} << 24;

u64 number(std::string const& text, std::string const& where) {
  u64 value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value == 0 || value > largest)
    throw Error(Kind::bad_argument, where, "'" + text + "' is not a size",
                "use whole numbers from 1 to " + std::to_string(largest));
  return value;
}

std::vector<std::string> split(std::string const& text, char by) {
  std::vector<std::string> parts(1);
  for (char const character : text)
    if (character == by) parts.emplace_back();
    else parts.back() += character;
  return parts;
}

}  // namespace

std::vector<u64> parse_sweep(std::string const& text) {
  if (text == "seed") return parse_sweep("500,1000:20000:1000,11001:11050:1");
  std::vector<u64> sizes;
  for (auto const& item : split(text, ',')) {
    auto const bounds = split(item, ':');
    if (bounds.size() == 1) {
      sizes.push_back(number(item, "read --sweep"));
      continue;
    }
    if (bounds.size() != 3)
      throw Error(Kind::bad_argument, "read --sweep",
                  "'" + item + "' is neither a size nor a range",
                  "write sizes as 500 and ranges as FIRST:LAST:STEP");
    u64 const last = number(bounds[1], "read --sweep"), step = number(bounds[2], "read --sweep");
    for (u64 size = number(bounds[0], "read --sweep"); size <= last; size += step)
      sizes.push_back(size);
  }
  std::vector<u64> once;
  for (u64 const size : sizes)
    if (std::ranges::find(once, size) == once.end()) once.push_back(size);
  if (sizes.empty())
    throw Error(Kind::bad_argument, "read --sweep", "'" + text + "' contains no size",
                "let ranges end at or after their beginning");
  return once;
}

Problem parse_size(std::string const& text) {
  auto const sides = split(text, ',');
  if (sides.size() != 1 && sides.size() != 3)
    throw Error(Kind::bad_argument, "read --size", "'" + text + "' is neither N nor M,N,K",
                "give one number, or three with commas between them");
  Problem problem;
  problem.m = number(sides.front(), "read --size");
  problem.n = number(sides[sides.size() / 2], "read --size");
  problem.k = number(sides.back(), "read --size");
  return problem;
}

void read_texts(Texts const& texts, Options& options) {
  options.type = blas::parse_type(texts.type);
  options.peer = texts.peer == "on";
  options.ipc = texts.ipc == "on";
  options.order = texts.order == "numbers" ? Order::numbers
                  : texts.order == "k"     ? Order::k
                                           : Order::links;
  if (!texts.grid.empty()) options.grid = parse_grid(texts.grid);
  if (options.seed == 0) options.seed = std::random_device{}();
  options.largest = texts.sweep.empty() && texts.size == "max";
  if (options.largest) return;
  if (texts.sweep.empty()) options.problems.push_back(parse_size(texts.size));
  else
    for (u64 const n : parse_sweep(texts.sweep)) options.problems.push_back({n, n, n, {}});
}

}  // namespace meshpost::gemm
