#include "restart.hpp"

#include <meshpost/base/error.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/command.hpp"
#include "common/files.hpp"

namespace euler {
namespace {

// A restart file: this, then the values.
struct Header {
  char magic[16];
  u64 x, y, z, step;
  double time, dt, amplitude;
  u64 checksum;  // of the fields above, from x on, and of the values
};
static_assert(sizeof(Header) == 80);

constexpr char magic[16] = "meshpost-euler1";
constexpr u64 most_cells = u64{1} << 40;

// FNV-1a over words: it finds accidental changes.
u64 checksum_of(Header const& header, std::span<double const> values) {
  u64 sum = 0xcbf29ce484222325;
  auto const add = [&](std::span<std::byte const> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(u64)) {
      u64 word = 0;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      sum = (sum ^ word) * 0x100000001b3;
      sum ^= sum >> 29;
    }
  };
  auto const all = std::as_bytes(std::span(&header, 1));
  add(all.subspan(sizeof magic, offsetof(Header, checksum) - sizeof magic));
  add(std::as_bytes(values));
  return sum;
}

[[noreturn]] void refuse_file(std::string const& file, std::string const& why,
                              std::string const& remedy) {
  meshpost::apps::refuse("--restart " + file, why, remedy);
}

}  // namespace

double State::largest_rate(std::string const& given) const {
  if (values.empty()) return problem.initial_rate();
  auto const& n = problem.cells;
  double most = 0;
  u64 const all = n.x * n.y * n.z;
  for (u64 cell = 0; cell < all; ++cell) {
    double u[components];
    for (u32 c = 0; c < components; ++c) u[c] = values[c * all + cell];
    double const rate = signal_rate(problem, u);
    if (!std::isfinite(rate))
      meshpost::apps::refuse(
          given,
          "cell (" + std::to_string(cell % n.x) + ", " + std::to_string(cell / n.x % n.y) + ", " +
              std::to_string(cell / n.x / n.y) + ") has no positive density and pressure",
          "start again with a smaller --dt");
    most = rate > most ? rate : most;
  }
  return most;
}

void save(std::string const& file, State const& state) {
  auto const& n = state.problem.cells;
  Header header{{}, n.x, n.y, n.z, state.step, state.time, state.dt, state.problem.amplitude, 0};
  std::memcpy(header.magic, magic, sizeof magic);
  header.checksum = checksum_of(header, state.values);
  meshpost::apps::write_pieces(
      file, {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(state.values))});
}

State load(std::string const& file) {
  std::string const another = "name a file of --save";
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_file(file, "it can't be read", another);
  std::error_code failed;
  u64 const size = std::filesystem::file_size(file, failed);
  Header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (failed || !in || std::memcmp(header.magic, magic, sizeof magic) != 0)
    refuse_file(file, "it is no restart file", another);
  u64 const x = header.x, y = header.y, z = header.z;
  // Division keeps the product from overflow.
  if (x == 0 || y == 0 || z == 0 || x > most_cells / y || x * y > most_cells / z)
    refuse_file(file, "its header names no possible grid", another);
  u64 const count = x * y * z * components, needed = sizeof header + count * sizeof(double);
  if (size != needed)
    refuse_file(file,
                "it has " + std::to_string(size) + " bytes, and its " + std::to_string(x) + " x " +
                    std::to_string(y) + " x " + std::to_string(z) + " cells take " +
                    std::to_string(needed),
                "it was cut or changed: name a whole one");
  State state{{{x, y, z}, header.amplitude}, header.step, header.time, header.dt, {}};
  state.values.resize(count);
  in.read(reinterpret_cast<char*>(state.values.data()),
          static_cast<std::streamsize>(count * sizeof(double)));
  if (!in || checksum_of(header, state.values) != header.checksum)
    refuse_file(file, "its check sum is wrong", "it was changed: name another one");
  return state;
}

}  // namespace euler
