// What a message from the network may hold: a parcel as it was sent, or nothing that is carried
// out.
#include "rma/parcel.hpp"

#include <cstring>
#include <random>

#include "support/errors.hpp"

namespace meshpost::detail {
namespace {

using test::error_of;
using test::says;

struct Parcels : testing::Test {
  u64 const seed = std::random_device{}();
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};

  u64 below(u64 limit) { return random() % limit; }
  // Nothing in it is wrong.
  Parcel any(std::string& payload) {
    using enum Parcel::Kind;
    Parcel parcel{.run = 3, .sequence = static_cast<u32>(random())};
    parcel.kind = static_cast<Parcel::Kind>(below(static_cast<u64>(count)));
    parcel.device = static_cast<u32>(below(8));
    parcel.offset = below(1 << 20) * 8;
    parcel.value = random();
    bool const carries = parcel.kind == put || parcel.kind == answer;
    payload.assign(carries ? below(below(4) ? 600 : 3) : 0, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    parcel.bytes = carries ? payload.size() : u64{1} << below(4);
    if (parcel.kind == put) parcel.counter = below(1000) * 4, parcel.sender_word = below(1000) * 4;
    parcel.request = below(100);
    parcel.check = check_of(parcel, payload);
    return parcel;
  }
  static std::string message(Parcel const& parcel, std::string const& payload) {
    return std::string(reinterpret_cast<char const*>(&parcel), sizeof parcel) + payload;
  }
};

TEST_F(Parcels, are_read_as_they_were_sent) {
  for (int round = 0; round < 1000; ++round) {
    std::string payload;
    auto const sent = any(payload);
    auto const bytes = message(sent, payload);
    auto const come = read_parcel(bytes);
    ASSERT_EQ(std::memcmp(&come.parcel, &sent, sizeof sent), 0);
    ASSERT_EQ(come.payload, payload);
  }
}

TEST_F(Parcels, with_any_bit_changed_are_refused) {
  for (int round = 0; round < 30; ++round) {
    std::string payload;
    auto const right = message(any(payload), payload);
    for (std::size_t bit = 0; bit < right.size() * 8; ++bit) {
      auto changed = right;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      ASSERT_TRUE(says(error_of([&] { read_parcel(changed); }), Kind::peer_lost,
                       {"receive a parcel", "changed on its way"}))
          << "bit " << bit;
    }
  }
}

TEST_F(Parcels, that_are_cut_lengthened_or_mixed_up_are_refused) {
  u32 refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string payload, other_payload;
    auto bytes = message(any(payload), payload);
    auto const right = bytes;
    switch (round % 5) {
      case 0: bytes.resize(below(bytes.size())); break;
      case 1: bytes += std::string(1 + below(20), static_cast<char>(random())); break;
      case 2: {  // the beginning of one, the end of another
        auto const other = message(any(other_payload), other_payload);
        auto const at = below(std::min({bytes.size(), other.size(), sizeof(Parcel)}));
        bytes = bytes.substr(0, at) + other.substr(at);
        break;
      }
      case 3:
        for (u64 i = 0; i < 1 + below(40); ++i)
          bytes[below(sizeof(Parcel))] = static_cast<char>(random());
        break;
      default:
        bytes.resize(below(300));
        for (char& c : bytes) c = static_cast<char>(random());
        break;
    }
    try {
      auto const come = read_parcel(bytes);
      // Only where nothing was changed in the end, or all of it was.
      ASSERT_TRUE(bytes == right || round % 5 == 2);
      ASSERT_EQ(come.parcel.check, check_of(come.parcel, come.payload));
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::peer_lost);
      ++refused;
    }
  }
  EXPECT_GT(refused, 90'000u);
}

// Whoever sends them knows how to check them: a process of another mind.
TEST_F(Parcels, whose_fields_cannot_be_are_refused) {
  auto const refused = [](Parcel parcel, std::string const& payload,
                          std::initializer_list<std::string_view> pieces) {
    parcel.check = check_of(parcel, payload);
    EXPECT_TRUE(
        says(error_of([&] { read_parcel(message(parcel, payload)); }), Kind::peer_lost, pieces));
  };
  using enum Parcel::Kind;
  refused({.kind = count}, "", {"a parcel of kind 6"});
  refused({.kind = static_cast<Parcel::Kind>(77)}, "", {"a parcel of kind 77"});
  refused({.kind = put, .bytes = 3}, "four", {"sent 4 bytes", "for 3"});
  refused({.kind = add, .bytes = 0}, "four", {"sent 4 bytes"});
  refused({.kind = store, .bytes = 3}, "", {"a word of 3 bytes"});
  refused({.kind = store, .offset = 12, .bytes = 8}, "", {"8 bytes at offset 12"});
  refused({.kind = add, .bytes = 4, .written = Parcel::Written::to_slot}, "",
          {"written elsewhere"});
  refused({.kind = put, .bytes = 4, .written = static_cast<Parcel::Written>(3)}, "",
          {"written elsewhere"});
  refused({.kind = add, .offset = 6}, "", {"offset 6"});
  refused({.kind = put, .counter = 5}, "", {"where none can be"});
  refused({.kind = put, .counter = 4, .sender_word = 2}, "", {"where none can be"});
}

}  // namespace
}  // namespace meshpost::detail
