#include "net/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::net {

void refuse_message(std::string cause) {
  throw Error(Kind::peer_lost, "receive a message", std::move(cause),
              "start the job again, with the same build in all processes; if it happens again, "
              "report it");
}

u64 check_of(FrameHeader header, std::string_view client_header, std::string_view bytes) {
  std::array<char, sizeof header + most_client_header> all;
  header.check = (header.flags & FrameHeader::summed) != 0 ? hash_of(bytes) : bytes.size();
  std::memcpy(all.data(), &header, sizeof header);
  client_header.copy(all.data() + sizeof header, client_header.size());
  return hash_of({all.data(), sizeof header + client_header.size()});
}

FrameOut::FrameOut(FrameHeader header, std::string_view client_header, std::string_view bytes) {
  if (client_header.size() > most_client_header)
    throw Error(Kind::bad_argument, "send a message",
                fmt::format("a header of {} bytes, at most {} fit", client_header.size(),
                            most_client_header),
                "report it");
  bool const is_short = bytes.size() <= most_copied;
  header.header_bytes = static_cast<u32>(client_header.size());
  header.body_bytes = static_cast<u32>(bytes.size());
  if (is_short) header.flags |= FrameHeader::summed;
  header.check = check_of(header, client_header, bytes);
  std::memcpy(copied_.data(), &header, sizeof header);
  size_ = sizeof header;
  size_ += client_header.copy(copied_.data() + size_, client_header.size());
  if (is_short) size_ += bytes.copy(copied_.data() + size_, bytes.size());
  else rest_ = bytes;
}

FrameIn FrameIn::read(std::string_view all) {
  FrameIn come{};
  auto& header = come.header;
  if (all.size() < sizeof header)
    refuse_message(
        fmt::format("it has {} bytes; a message has at least {}", all.size(), sizeof header));
  std::memcpy(&header, all.data(), sizeof header);
  auto const behind = all.substr(sizeof header);
  if (header.header_bytes > std::min<u64>(most_client_header, behind.size()))
    refuse_message("it was changed on its way");
  come.client_header = behind.substr(0, header.header_bytes);
  come.bytes = behind.substr(header.header_bytes);
  if (header.body_bytes != come.bytes.size() ||
      header.check != check_of(header, come.client_header, come.bytes))
    refuse_message("it was changed on its way");
  if (header.flags > FrameHeader::all || (come.has(FrameHeader::written) && !come.bytes.empty()) ||
      (header.kind == 0 && (!behind.empty() || come.has(FrameHeader::written))))
    refuse_message(
        fmt::format("no message has its kind {} and flags {}", header.kind, header.flags));
  return come;
}

}  // namespace meshpost::net
