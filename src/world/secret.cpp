#include "world/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "meshpost/base/error.hpp"
#include "meshpost/base/held.hpp"

namespace meshpost {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[noreturn]] void refuse_file(std::string const& path, std::string const& cause,
                              std::string remedy) {
  throw Error(Kind::bad_environment, fmt::format("use the file {}", path), cause,
              std::move(remedy));
}

}  // namespace

void begin_secrets() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

RandomBytes random_bytes() {
  RandomBytes bytes;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), sizeof bytes) != 1)
    throw Error(Kind::bad_environment, "random bytes", "OpenSSL has none",
                "make /dev/urandom readable");
  return bytes;
}

std::optional<Secret> Secret::from_hex(std::string_view text) {
  RandomBytes bytes;
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    int const high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<char>(high * 16 + low);
  }
  return Secret(bytes);
}

std::string Secret::hex() const {
  std::string text;
  for (char const byte : bytes_) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<std::string> find_private_file(std::string const& path) {
  // Not blocking: it may be a pipe that nobody writes to.
  Descriptor const file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file && errno == ELOOP) refuse_file(path, "it is a symbolic link", "name the file itself");
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0)
    refuse_file(path, std::strerror(errno), "name a file that you may read");
  if (!S_ISREG(status.st_mode)) refuse_file(path, "it is no plain file", "name one");
  if (status.st_uid != geteuid())
    refuse_file(path, fmt::format("it belongs to user {}, not to {}", status.st_uid, geteuid()),
                "use one of your own");
  if ((status.st_mode & 077) != 0)
    refuse_file(
        path, fmt::format("others may use it: it has mode {:03o}, not 600", status.st_mode & 0777),
        fmt::format("chmod 600 {}, and choose a new secret", path));
  char text[most_of_private_file];
  auto const size = read(file.get(), text, sizeof text);
  if (size < 0) refuse_file(path, std::strerror(errno), "make it readable");
  return std::string(text, static_cast<std::size_t>(size));
}

std::string read_private_file(std::string const& path) {
  if (auto text = find_private_file(path)) return *std::move(text);
  refuse_file(path, "there is no such file on this host", "name a file that each host has");
}

Descriptor write_private_file(std::string const& path, std::string_view text) {
  auto const draft = fmt::format("{}.{}", path, getpid());
  unlink(draft.c_str());
  errno = ENOSPC;  // in case less is written than was asked for
  Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool const written =
      file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written) hold(file);
  if (written && rename(draft.c_str(), path.c_str()) == 0) return file;
  int const error = errno;
  unlink(draft.c_str());
  refuse_file(path, fmt::format("it can't be written: {}", std::strerror(error)),
              "name a file in a folder that you may write to, on a disk with room");
}

}  // namespace meshpost
