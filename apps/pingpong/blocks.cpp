#include "blocks.hpp"

#include <charconv>
#include <vector>

#include "meshpost/base/error.hpp"

namespace pingpong {

using namespace meshpost;

namespace {

// Three numbers between separators; empty if the text is anything else.
std::vector<u32> three(std::string const& text, char separator) {
  std::vector<u32> numbers;
  char const *at = text.data(), *const end = at + text.size();
  for (;;) {
    u32 number = 0;
    auto const [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return {};
    numbers.push_back(number);
    if (rest == end) return numbers.size() == 3 ? numbers : std::vector<u32>{};
    if (*rest != separator) return {};
    at = rest + 1;
  }
}

}  // namespace

std::string Blocks::text() const {
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
}

std::string Tasks::text() const {
  return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
}

Blocks near_cube(u32 devices) {
  Blocks best{devices, 1, 1};
  for (u32 z = 1; z * z * z <= devices; ++z)
    for (u32 y = z; devices % z == 0 && y * y * z <= devices; ++y)
      if (devices / z % y == 0 && devices / z / y + y + z < best.x + best.y + best.z)
        best = {devices / z / y, y, z};
  return best;
}

Blocks parse_blocks(std::string const& text) {
  auto const numbers = three(text, 'x');
  if (numbers.empty() || numbers[0] == 0 || numbers[1] == 0 || numbers[2] == 0 ||
      u64{numbers[0]} * numbers[1] > 1024 || u64{numbers[0]} * numbers[1] * numbers[2] > 1024)
    throw Error(Kind::bad_argument, "--blocks " + text,
                "these are no three numbers of blocks, at most 1024 in all",
                "write X x Y x Z as in 2x2x1");
  return {numbers[0], numbers[1], numbers[2]};
}

Tasks parse_tasks(std::string const& text) {
  auto const numbers = three(text, ',');
  auto const in = [](u32 number, u32 most) { return number >= 1 && number <= most; };
  if (numbers.empty() || !in(numbers[0], faces) || !in(numbers[1], 64) || !in(numbers[2], faces))
    throw Error(Kind::bad_argument, "--tasks " + text,
                "these are no numbers of kernels X,Y,Z that pack, compute the interior and unpack",
                "X and Z are from 1 to 6 (the faces of a block), Y from 1 to 64, as in 1,1,1");
  return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace pingpong
