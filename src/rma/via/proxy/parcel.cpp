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
    refuse_parcel(fmt::format("it has a header of {} bytes; a parcel's has {}",
                              message.header.size(), sizeof parcel));
  std::memcpy(&parcel, message.header.data(), sizeof parcel);
  using enum Parcel::Kind;
  bool const carries = parcel.has_bytes() && parcel.written == Parcel::Written::no;
  if (parcel.kind >= count)
    refuse_parcel(fmt::format("it is a parcel of kind {}", static_cast<u32>(parcel.kind)));
  if (message.bytes.size() != (carries ? parcel.bytes : 0))
    refuse_parcel(fmt::format("it has {} bytes with a parcel of kind {} for {}",
                              message.bytes.size(), static_cast<u32>(parcel.kind), parcel.bytes));
  if (message.written != (parcel.written != Parcel::Written::no))
    refuse_parcel("it told that the bytes of a parcel are written which has them with it");
  if (parcel.written > (parcel.has_bytes() ? Parcel::Written::to_slot : Parcel::Written::no))
    refuse_parcel(fmt::format("it is a parcel of kind {} with bytes written elsewhere",
                              static_cast<u32>(parcel.kind)));
  bool const odd =
      (parcel.kind == put && (parcel.counter | parcel.sender_word) % sizeof(u32) != 0) ||
      (parcel.kind == add && parcel.offset % sizeof(u32) != 0) ||
      (parcel.kind == store && (!is_word(parcel.bytes) || parcel.offset % parcel.bytes != 0));
  if (odd)
    refuse_parcel(
        fmt::format("it is a parcel of kind {} for a word of {} bytes at offset {}, where "
                    "none can be",
                    static_cast<u32>(parcel.kind), parcel.bytes, parcel.offset));
  return parcel;
}

}  // namespace meshpost::detail
