// Content of a message from another proxy: either a parcel that can be carried out, or an error.
#include "rma/via/proxy/parcel.hpp"

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
  // A valid parcel.
  Parcel any(std::string& payload) {
    using enum Parcel::Kind;
    Parcel parcel{.run = 3};
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
    return parcel;
  }
  static Parcel read(Parcel const& parcel, std::string const& payload) {
    return read_parcel({{reinterpret_cast<char const*>(&parcel), sizeof parcel},
                        payload,
                        parcel.written != Parcel::Written::no});
  }
};

TEST_F(Parcels, are_read_as_they_were_sent) {
  for (int round = 0; round < 1000; ++round) {
    std::string payload;
    auto const sent = any(payload);
    auto const come = read(sent, payload);
    ASSERT_EQ(std::memcmp(&come, &sent, sizeof sent), 0);
  }
}

// Only a faulty process sends such bytes: the channel detects changes by the network.
TEST_F(Parcels, with_any_bytes_are_read_or_refused) {
  u32 refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string payload;
    auto parcel = any(payload);
    char* const bytes = reinterpret_cast<char*>(&parcel);
    for (u64 i = 0; i < 1 + below(40); ++i)
      bytes[below(sizeof parcel)] = static_cast<char>(random());
    try {
      read_parcel({{bytes, below(20) ? sizeof parcel : below(300) % sizeof parcel},
                   payload,
                   below(2) == 0});
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::peer_lost);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50'000u);
}

TEST_F(Parcels, whose_fields_cannot_be_are_refused) {
  auto const refused = [](Parcel const& parcel, std::string const& payload,
                          std::initializer_list<std::string_view> pieces) {
    EXPECT_TRUE(says(error_of([&] { read(parcel, payload); }), Kind::peer_lost, pieces));
  };
  using enum Parcel::Kind;
  refused({.kind = count}, "", {"a parcel of kind 6"});
  refused({.kind = static_cast<Parcel::Kind>(77)}, "", {"a parcel of kind 77"});
  refused({.kind = put, .bytes = 3}, "four", {"sent 4 bytes", "for 3"});
  refused({.kind = add, .bytes = 0}, "four", {"sent 4 bytes"});
  refused({.kind = store, .bytes = 3}, "", {"a word of 3 bytes"});
  refused({.kind = store, .offset = 12, .bytes = 8}, "", {"8 bytes at offset 12"});
  refused({.kind = add, .written = Parcel::Written::to_slot, .bytes = 4}, "",
          {"written elsewhere"});
  refused({.kind = put, .written = static_cast<Parcel::Written>(3), .bytes = 4}, "",
          {"written elsewhere"});
  refused({.kind = add, .offset = 6}, "", {"offset 6"});
  refused({.kind = put, .counter = 5}, "", {"where none can be"});
  refused({.kind = put, .counter = 4, .sender_word = 2}, "", {"where none can be"});
}

}  // namespace
}  // namespace meshpost::detail
