#include "rma/parcel.hpp"

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

u64 check_of(Parcel parcel, std::string_view payload) {
  parcel.check = hash_of(payload);
  return hash_of({reinterpret_cast<char const*>(&parcel), sizeof parcel});
}

u64 sum_of(std::string_view bytes) {
  u64 const sum = hash_of(bytes);
  return sum == 0 ? 1 : sum;
}

Arrival read_parcel(std::string_view message) {
  Arrival come;
  auto& parcel = come.parcel;
  if (message.size() < sizeof parcel)
    refuse_parcel(fmt::format("it sent {} bytes; a parcel has {}", message.size(), sizeof parcel));
  std::memcpy(&parcel, message.data(), sizeof parcel);
  come.payload = message.substr(sizeof parcel);
  if (parcel.check != check_of(parcel, come.payload))
    refuse_parcel("a parcel was changed on its way");
  using enum Parcel::Kind;
  bool const has_bytes = parcel.kind == put || parcel.kind == answer;
  bool const carries = has_bytes && parcel.written == Parcel::Written::no;
  if (parcel.kind >= count)
    refuse_parcel(fmt::format("it sent a parcel of kind {}", static_cast<u32>(parcel.kind)));
  if (come.payload.size() != (carries ? parcel.bytes : 0))
    refuse_parcel(fmt::format("it sent {} bytes with a parcel of kind {} for {}",
                              come.payload.size(), static_cast<u32>(parcel.kind), parcel.bytes));
  if (parcel.written > (has_bytes ? Parcel::Written::to_slot : Parcel::Written::no))
    refuse_parcel(fmt::format("it sent a parcel of kind {} with bytes written elsewhere",
                              static_cast<u32>(parcel.kind)));
  bool const odd =
      (parcel.kind == put && (parcel.counter | parcel.sender_word) % sizeof(u32) != 0) ||
      (parcel.kind == add && parcel.offset % sizeof(u32) != 0) ||
      (parcel.kind == store && (!is_word(parcel.bytes) || parcel.offset % parcel.bytes != 0));
  if (odd)
    refuse_parcel(
        fmt::format("it sent a parcel of kind {} for a word of {} bytes at offset {}, where "
                    "none can be",
                    static_cast<u32>(parcel.kind), parcel.bytes, parcel.offset));
  return come;
}

}  // namespace meshpost::detail
