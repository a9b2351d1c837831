#include "rma/via/proxy/parcel.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

bool is_word(u64 bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

void refuse_parcel(std::string cause) {
  throw Error(Kind::peer_lost, "receive a parcel", std::move(cause),
              "start the job again; if it happens again, report it");
}

u64 sum_of(std::string_view bytes) {
  u64 const sum = hash_of(bytes);
  return sum == 0 ? 1 : sum;
}

Parcel read_parcel(net::Channel::Message const& message) {
  Parcel parcel;
  if (message.header.size() != sizeof parcel)
    refuse_parcel(fmt::format("the sender sent a header of {} bytes; a parcel's has {}",
                              message.header.size(), sizeof parcel));
  std::memcpy(&parcel, message.header.data(), sizeof parcel);
  auto const& [count, place, size, own, kind, device] = parcel.message;
  using enum Parcel::Kind;
  bool const carries = parcel.has_bytes() && parcel.written == Parcel::Written::no;
  if (kind >= kinds)
    refuse_parcel(fmt::format("the sender sent a parcel of kind {}", static_cast<u32>(kind)));
  if (message.bytes.size() != (carries ? size : 0))
    refuse_parcel(fmt::format("the sender sent {} bytes with a parcel of kind {} for {}",
                              message.bytes.size(), static_cast<u32>(kind), size));
  if (message.written != (parcel.written != Parcel::Written::no))
    refuse_parcel(
        "the sender sent a parcel whose header and message disagree on where its bytes are");
  bool const may_be_written = parcel.has_bytes() && kind != store;
  if (parcel.written > (may_be_written ? Parcel::Written::to_slot : Parcel::Written::no))
    refuse_parcel(fmt::format("the sender sent a parcel of kind {} with bytes written elsewhere",
                              static_cast<u32>(kind)));
  if (count.counter % sizeof(u32) != 0 || (kind == store && (!is_word(size) || place % size != 0)))
    refuse_parcel(fmt::format(
        "the sender sent a parcel of kind {} for a word of {} bytes at offset {}, where "
        "none can be",
        static_cast<u32>(kind), size, kind == store ? place : count.at()));
  return parcel;
}

}  // namespace meshpost::detail
