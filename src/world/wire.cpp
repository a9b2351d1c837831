#include "world/wire.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace meshpost::wire {
namespace {

[[noreturn]] void refuse(std::string cause) {
  throw Error(Kind::bad_argument, "read a message", std::move(cause),
              "find out who sends it: it is no process of this job");
}

}  // namespace

std::string pack_header(Header header, std::string_view bytes) {
  if (bytes.size() > most)
    throw Error(Kind::bad_argument, "send a message",
                fmt::format("it has {} bytes; there may be {}", bytes.size(), most),
                "send less at a time");
  header.size = static_cast<u32>(bytes.size());
  return {reinterpret_cast<char const*>(&header), sizeof header};
}

std::string pack(Header header, std::string_view bytes) {
  return pack_header(header, bytes).append(bytes);
}

std::optional<Frame> Cutter::next() {
  auto const waiting = std::string_view(buffer_).substr(taken_);
  Frame frame;
  auto& header = frame.header;
  if (waiting.size() < sizeof header) return wait_for_more();
  std::memcpy(&header, waiting.data(), sizeof header);
  if (header.type >= Type::count)
    refuse(fmt::format("there is no type {}", static_cast<u32>(header.type)));
  if (header.size > limit_)
    refuse(fmt::format("it claims {} bytes; there may be {}", header.size, limit_));
  if (waiting.size() - sizeof header < header.size) return wait_for_more();
  frame.bytes = waiting.substr(sizeof header, header.size);
  taken_ += sizeof header + header.size;
  return frame;
}

std::optional<Frame> Cutter::wait_for_more() {
  buffer_.erase(0, std::exchange(taken_, 0));
  return std::nullopt;
}

void Unpacker::copy(void* target, u64 size) {
  if (size > bytes_.size()) refuse(fmt::format("it ends {} bytes too early", size - bytes_.size()));
  std::memcpy(target, bytes_.data(), size);
  bytes_.remove_prefix(size);
}

std::string Unpacker::text() {
  u64 const size = value<u64>();
  if (size > bytes_.size()) refuse(fmt::format("it ends {} bytes too early", size - bytes_.size()));
  std::string const text(bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return text;
}

std::string pack(Error const& error) {
  return Packer()
      .value(error.kind())
      .text(error.operation())
      .text(error.cause())
      .text(error.remedy())
      .take();
}

Error unpack_error(std::string_view bytes) {
  Unpacker unpacker(bytes);
  auto const kind = unpacker.value<Kind>();
  auto const operation = unpacker.text(), cause = unpacker.text(), remedy = unpacker.text();
  return {kind, operation, cause, remedy};
}

}  // namespace meshpost::wire
