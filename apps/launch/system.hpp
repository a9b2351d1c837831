#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "meshpost/base/error.hpp"

// What every file here needs of the operating system: descriptors that close themselves, errors.

namespace meshpost::launch {

/// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd() { close(); }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// The error that errno tells of, behind a call of the system that returned -1.
inline Error system_error(std::string operation, std::string remedy) {
  return {Kind::bad_environment, std::move(operation), std::strerror(errno), std::move(remedy)};
}

}  // namespace meshpost::launch
