#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// The connections between the processes of a job carry frames of a header and bytes. Both ends run
// the same build (the greeting checks it), so fields are sent as they lie in memory. No sockets
// here; garbage is detected here. Header, the first three types and pack(Error) are the same in
// every version. So one version can tell another that versions differ.

namespace meshpost::wire {

enum class Type : u32 {
  hello,     ///< a process says who it is
  welcome,   ///< and is let in
  refusal,   ///< or is refused: text
  bring,     ///< a process's part of an exchange
  all,       ///< everybody's parts
  mismatch,  ///< the exchange failed: text
  awaited,   ///< others wait in an exchange: the lowest step that one of them has reached
  message,   ///< a message for a channel of another process
  ask,       ///< a question for another process
  reply,     ///< its answer
  lost,      ///< a process has ended: Loss
  leave,     ///< the sender ends well
  beat,      ///< the sender lives
  count
};

struct Header {
  u32 size = 0;  ///< of the bytes that follow
  Type type = Type::beat;
  u32 process = 0;  ///< the process that it is from, or for, or about
  u32 channel = 0;
  u64 sequence = 0;
};

struct Frame {
  Header header;
  std::string bytes;
};

constexpr u32 most_before_greeting = 512;
constexpr u32 most = u32{256} << 20;

/// Packs `header` for these bytes, which follow it.
/// \throws Error(bad_argument) if there are too many bytes
std::string pack_header(Header header, std::string_view bytes);
std::string pack(Header header, std::string_view bytes);

/// Cuts the arriving bytes into frames.
class Cutter {
 public:
  explicit Cutter(u32 limit) : limit_(limit) {}
  /// Holds from the next frame on.
  void set_limit(u32 limit) { limit_ = limit; }
  /// Append the arrived bytes here.
  std::string& buffer() { return buffer_; }
  /// The next whole frame.
  /// \throws Error(bad_argument) if the bytes can't be a frame
  std::optional<Frame> next();

 private:
  std::optional<Frame> wait_for_more();

  u32 limit_;
  std::string buffer_;
  std::size_t taken_ = 0;
};

/// Packs plain values and texts one behind the other. Unpacker takes them out again.
class Packer {
 public:
  explicit Packer(std::size_t expected = 0) { bytes_.reserve(expected); }
  template <class T>
  Packer& value(T const& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<char const*>(&value), sizeof value);
    return *this;
  }
  Packer& text(std::string_view text) {
    value(static_cast<u64>(text.size()));
    bytes_ += text;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);  // a bool is 0 or 1
    T value;
    copy(&value, sizeof value);
    return value;
  }
  std::string text();
  bool at_end() const { return bytes_.empty(); }

 private:
  /// \throws Error(bad_argument) if there are fewer bytes
  void copy(void* target, u64 size);
  std::string_view bytes_;
};

std::string pack(Error const& error);
/// \throws Error(bad_argument) for garbage
Error unpack_error(std::string_view bytes);

}  // namespace meshpost::wire
