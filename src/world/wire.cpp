#include "world/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace meshpost::wire {
namespace {

[[noreturn]] void refuse(std::string cause) {
  throw Error(Kind::bad_argument, "read a message", std::move(cause),
              "find out who sends it: it is no process of this job");
}

}  // namespace

void pack_onto(std::string& stream, Header header, std::string_view bytes, Seal* seal) {
  if (bytes.size() > most)
    throw Error(Kind::bad_argument, "send a message",
                fmt::format("it has {} bytes; there may be {}", bytes.size(), most),
                "send less at a time");
  header.size = static_cast<u32>(bytes.size());
  auto const add = [&](std::string_view part) {
    stream += part;
    if (!seal) return;
    auto const mark = seal->next(part);
    stream.append(mark.data(), mark.size());
  };
  add({reinterpret_cast<char const*>(&header), sizeof header});
  if (!bytes.empty()) add(bytes);
}

std::string pack(Header header, std::string_view bytes) {
  std::string packed;
  pack_onto(packed, header, bytes);
  return packed;
}

std::optional<Frame> Cutter::next() {
  if (!header_) {
    if (!has(sizeof(Header) + mark_size())) return std::nullopt;
    auto const bytes = take(sizeof(Header));
    check(bytes);
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.type >= Type::count)
      refuse(fmt::format("there is no type {}", static_cast<u32>(header.type)));
    if (header.size > limit_)
      refuse(fmt::format("it claims {} bytes; there may be {}", header.size, limit_));
    header_ = header;
  }
  u64 const size = header_->size;
  if (size > 0 && !has(size + mark_size())) return std::nullopt;
  auto const bytes = take(size);
  if (size > 0) check(bytes);
  return Frame{*std::exchange(header_, std::nullopt), std::string(bytes)};
}

bool Cutter::has(std::size_t size) {
  if (buffer_.size() - taken_ >= size) return true;
  buffer_.erase(0, std::exchange(taken_, 0));
  return false;
}

std::string_view Cutter::take(std::size_t size) {
  return std::string_view(buffer_).substr(std::exchange(taken_, taken_ + size), size);
}

void Cutter::check(std::string_view part) {
  if (!seal_) return;
  Seal::Mark mark;
  std::ranges::copy(take(mark.size()), mark.begin());
  if (!seal_->proves_next(part, mark))
    throw Error(Kind::bad_argument, "read a message",
                "a message was changed on its way, or left out",
                "find out what lies between the hosts, then start the job again");
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
