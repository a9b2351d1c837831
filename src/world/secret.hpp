#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/base/types.hpp"

// Who knows the secret of a job may join it, nobody else. It never crosses a connection: both ends
// prove that they know it (tls.hpp).

namespace meshpost {

using RandomBytes = std::array<char, 32>;

/// Begins with OpenSSL, unless the program has: it must not clean up at exit, when a thread may
/// still be encrypting its last messages.
void begin_secrets();

/// Bytes nobody can guess.
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

/// What is behind that in a private file is not read.
inline constexpr std::size_t most_of_private_file = 4096;

/// The text of a file that nobody but its owner, this user, may read or write.
/// \throws Error(bad_environment) naming the file and what to change
std::string read_private_file(std::string const& path);
/// The same; nothing if there is no such file.
std::optional<std::string> find_private_file(std::string const& path);
/// Writes a file that nobody else may read, whole or not at all; replaces one that is there. It is
/// held while what is returned is open (meshpost/base/held.hpp). \throws Error(bad_environment)
Descriptor write_private_file(std::string const& path, std::string_view text);

}  // namespace meshpost
