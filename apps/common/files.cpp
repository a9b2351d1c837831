#include "common/files.hpp"

#include <fstream>
#include <stdexcept>

namespace meshpost::apps {

namespace {

// Under this name a file is written until it is complete. The files that are none, such as
// /dev/null, are written themselves.
std::string part_of(std::string const& file) {
  bool const plain = !std::filesystem::exists(file) || std::filesystem::is_regular_file(file);
  return plain ? file + ".part" : file;
}

[[noreturn]] void throw_unwritable(std::string const& file, std::string const& part) {
  std::error_code ignored;
  if (part != file) std::filesystem::remove(part, ignored);
  throw std::runtime_error(file + ": it can't be written; name another file");
}

}  // namespace

void check_writable(std::string const& file) {
  auto const part = part_of(file);
  if (!std::ofstream(part, std::ios::binary)) throw_unwritable(file, part);
  std::error_code ignored;
  if (part != file) std::filesystem::remove(part, ignored);
}

void write_pieces(std::string const& file,
                  std::initializer_list<std::span<std::byte const>> pieces) {
  auto const part = part_of(file);
  std::ofstream out(part, std::ios::binary);
  for (auto const piece : pieces)
    out.write(reinterpret_cast<char const*>(piece.data()), static_cast<long>(piece.size()));
  out.close();
  std::error_code failed;
  if (out && part != file) std::filesystem::rename(part, file, failed);
  if (!out || failed) throw_unwritable(file, part);
}

void write_npy(std::string const& file, std::string const& type, std::vector<u64> const& shape,
               std::span<std::byte const> bytes) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (std::size_t k = 0; k < shape.size(); ++k)
    header += (k > 0 ? ", " : "") + std::to_string(shape[k]);
  header += shape.size() == 1 ? ",), }" : "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string const length{static_cast<char>(header.size() & 0xff),
                           static_cast<char>(header.size() >> 8)};
  std::string const begin = std::string("\x93NUMPY\x01\0", 8) + length + header;
  write_pieces(file, {std::as_bytes(std::span(begin)), bytes});
}

void write_file(std::string const& file, std::span<std::byte const> bytes) {
  write_pieces(file, {bytes});
}

void write_text(std::string const& file, std::string_view text) {
  write_file(file, std::as_bytes(std::span(text)));
}

std::string line_of(std::filesystem::path const& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace meshpost::apps
