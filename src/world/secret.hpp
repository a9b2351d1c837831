#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/base/types.hpp"

// Only processes that know the secret of a job may join it. It never crosses a connection: both
// ends prove that they know it (tls.hpp).

namespace meshpost {

using RandomBytes = std::array<char, 32>;

/// Initializes OpenSSL, unless the program has. It must not clean up at exit: then a thread may
/// still be encrypting its last messages.
void begin_secrets();

/// Bytes that nobody can guess.
RandomBytes random_bytes();

class Secret {
 public:
  static constexpr std::size_t digits = 2 * std::tuple_size_v<RandomBytes>;  ///< of hex()
  explicit Secret(RandomBytes const& bytes) : bytes_(bytes) {}
  /// Nothing if `text` is not 64 hexadecimal digits.
  static std::optional<Secret> from_hex(std::string_view text);
  std::string hex() const;
  RandomBytes const& bytes() const { return bytes_; }

 private:
  RandomBytes bytes_;
};

/// Bytes of a private file behind this size are not read.
inline constexpr std::size_t most_of_private_file = 4096;

/// The text of a file that only its owner, this user, may read or write.
/// \throws Error(bad_environment) that names the file and what to change
std::string read_private_file(std::string const& path);
/// The same; nothing if there is no such file.
std::optional<std::string> find_private_file(std::string const& path);
/// Writes a file that nobody else may read, completely or not at all. Replaces an existing file. It
/// is held while the returned descriptor is open (meshpost/base/held.hpp).
/// \throws Error(bad_environment)
Descriptor write_private_file(std::string const& path, std::string_view text);

}  // namespace meshpost
