#include "rma/parcel.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

// With all words before it given, a word decides the sum, and each sum comes from one word: xor, a
// product with an odd number, and xor with itself shifted can all be undone.
u64 with(u64 sum, u64 word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15;
  return sum ^ sum >> 32;
}

u64 word_at(char const* bytes) {
  u64 word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Side by side, and without products, for which common processors have no vectors: twice as fast
// as with() alone. An odd multiple, too, can be undone.
using Words = u64 __attribute__((vector_size(16)));
constexpr u64 lanes = 8;

u64 with_many(u64 sum, char const*& bytes, u64& size) {
  std::array<Words, lanes> sums;
  for (u64 lane = 0; lane < lanes; ++lane) sums[lane] = Words{2 * lane + 1, 2 * lane + 2};
  for (; size >= sizeof sums; bytes += sizeof sums, size -= sizeof sums)
#pragma GCC unroll 8
    for (u64 lane = 0; lane < lanes; ++lane) {
      Words words;
      std::memcpy(&words, bytes + lane * sizeof words, sizeof words);
      words ^= sums[lane];
      words += words << 5;
      sums[lane] = words ^ words >> 27;
    }
  for (auto const& two : sums) sum = with(with(sum, two[0]), two[1]);
  return sum;
}

u64 with(u64 sum, char const* bytes, u64 size) {
  if (size >= lanes * sizeof(Words)) sum = with_many(sum, bytes, size);
  for (; size >= sizeof(u64); bytes += sizeof(u64), size -= sizeof(u64))
    sum = with(sum, word_at(bytes));
  if (size == 0) return sum;  // and `bytes` may be null
  u64 last = 0;
  std::memcpy(&last, bytes, size);
  return with(sum, last);
}

bool is_word(u64 bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

void refuse_parcel(std::string cause) {
  throw Error(Kind::peer_lost, "receive a parcel", std::move(cause),
              "start the job again; if it happens again, report it");
}

u64 check_of(Parcel parcel, std::string_view payload) {
  parcel.check = 0;
  u64 const sum = with(payload.size(), reinterpret_cast<char const*>(&parcel), sizeof parcel);
  return with(sum, payload.data(), payload.size());
}

u64 sum_of(std::string_view bytes) {
  u64 const sum = with(bytes.size(), bytes.data(), bytes.size());
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
