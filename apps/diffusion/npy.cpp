#include "npy.hpp"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <regex>
#include <span>
#include <stdexcept>

#include "common/files.hpp"
#include "common/host_memory.hpp"

namespace diffusion {
namespace {

[[noreturn]] void refuse(std::string const& file, std::string const& why) {
  throw std::runtime_error(file + ": " + why);
}

// Room for the values. Refuses more than the host has, with a clear error: the system may promise
// such memory and fail at its use.
void make_room(Field& field, std::string const& source) {
  double const bytes = 8.0 * field.levels * field.rows * field.columns;
  double const memory = meshpost::apps::host_memory();
  if (bytes > memory) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "its %u x %u x %u values take %.4g GB, and this host has %.4g GB of memory; "
                  "choose a smaller field",
                  field.levels, field.rows, field.columns, bytes * 1e-9, memory * 1e-9);
    refuse(source, text);
  }
  field.values.resize(std::size_t{field.levels} * field.rows * field.columns);
}

Field random_field(std::string const& source) {
  Field field;
  unsigned seed = 0;
  char rest = 0;
  if (std::sscanf(source.c_str(), "random:%ux%ux%u:%u%c", &field.levels, &field.rows,
                  &field.columns, &seed, &rest) != 4)
    refuse(source, "it should read random:LEVELSxROWSxCOLUMNS:SEED");
  make_room(field, source);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> values(0.0, 100.0);
  for (double& value : field.values) value = static_cast<float>(values(engine));
  return field;
}

}  // namespace

Field read_field(std::string const& source) {
  if (source.rfind("random:", 0) == 0) return random_field(source);
  std::ifstream in(source, std::ios::binary);
  if (!in) refuse(source, "it can't be opened");
  char magic[10] = {};
  in.read(magic, sizeof magic);
  if (!in || std::string(magic, 6) != "\x93NUMPY") refuse(source, "it is not a .npy file");
  std::uint32_t length = static_cast<unsigned char>(magic[8]) | static_cast<unsigned char>(magic[9])
                                                                    << 8;
  if (magic[6] != 1) {  // version 2 has two bytes more for the length
    char more[2] = {};
    in.read(more, 2);
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(more[0])) << 16;
  }
  std::string header(length, ' ');
  in.read(header.data(), length);
  std::smatch found;
  if (header.find("'<f8'") == std::string::npos)
    refuse(source, "its type is not little-endian float64 ('<f8')");
  if (header.find("'fortran_order': False") == std::string::npos)
    refuse(source, "it is not in C order");
  if (!std::regex_search(header, found, std::regex(R"(\((?:(\d+), *)?(\d+), *(\d+),?\))")))
    refuse(source, "it does not have two or three dimensions");
  Field field;
  field.levels = found[1].matched ? static_cast<unsigned>(std::stoul(found[1])) : 1;
  field.rows = static_cast<unsigned>(std::stoul(found[2]));
  field.columns = static_cast<unsigned>(std::stoul(found[3]));
  make_room(field, source);
  in.read(reinterpret_cast<char*>(field.values.data()),
          static_cast<long>(field.values.size() * sizeof(double)));
  if (!in) refuse(source, "it ends before its last value");
  return field;
}

void write_npy(std::string const& file, Field const& field) {
  meshpost::apps::write_npy(file, "<f8", {field.levels, field.rows, field.columns},
                            std::as_bytes(std::span(field.values)));
}

}  // namespace diffusion
