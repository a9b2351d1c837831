#include "common/npy.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace meshpost::apps {

void write_npy(std::string const& file, std::string const& type,
               std::vector<std::uint64_t> const& shape, std::span<std::byte const> bytes) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (std::size_t k = 0; k < shape.size(); ++k)
    header += (k > 0 ? ", " : "") + std::to_string(shape[k]);
  header += shape.size() == 1 ? ",), }" : "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  bool const plain = !std::filesystem::exists(file) || std::filesystem::is_regular_file(file);
  std::string const written = plain ? file + ".part" : file;  // not of /dev/null
  std::ofstream out(written, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  char const length[2] = {static_cast<char>(header.size() & 0xff),
                          static_cast<char>(header.size() >> 8)};
  out.write(length, 2);
  out << header;
  out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<long>(bytes.size()));
  out.close();
  std::error_code failed;
  if (out && plain) std::filesystem::rename(written, file, failed);
  if (!out || failed) {
    if (plain) std::filesystem::remove(written, failed);
    throw std::runtime_error(file + ": it can't be written");
  }
}

}  // namespace meshpost::apps
