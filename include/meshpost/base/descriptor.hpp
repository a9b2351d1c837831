#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace meshpost {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  /// A new descriptor of the same file. If that fails it is empty, and errno says why.
  static Descriptor copy_of(int number) { return Descriptor(fcntl(number, F_DUPFD_CLOEXEC, 0)); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }  ///< the caller closes it
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace meshpost
