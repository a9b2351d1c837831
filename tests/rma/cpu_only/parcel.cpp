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
    auto& message = parcel.message;
    message.kind = static_cast<Parcel::Kind>(below(static_cast<u64>(kinds)));
    message.device = static_cast<u32>(below(8));
    message.place = below(1 << 20) * 8;
    u64 const word = u64{1} << below(4);
    u64 const some = below(below(4) ? 600 : 3);
    payload.assign(!parcel.has_bytes() ? 0 : message.kind == store ? word : some, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    message.bytes = parcel.has_bytes() ? payload.size() : word;
    if (message.kind == put)
      message.signal = via::Signal::of(below(1000) * 4, below(1000) * via::Signal::unit, 7);
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
  using Written = Parcel::Written;
  refused({{.kind = kinds}}, "", {"a parcel of kind 5"});
  refused({{.kind = static_cast<Parcel::Kind>(77)}}, "", {"a parcel of kind 77"});
  refused({{.bytes = 3}}, "four", {"sent 4 bytes", "for 3"});
  refused({{.kind = get}}, "four", {"sent 4 bytes"});
  refused({{.bytes = 3, .kind = store}}, "abc", {"a word of 3 bytes"});
  refused({{.place = 12, .bytes = 8, .kind = store}}, "8 bytes.", {"8 bytes at offset 12"});
  refused({{.bytes = 4, .kind = store}, 0, Written::to_slot}, "", {"written elsewhere"});
  refused({{.bytes = 4}, 0, static_cast<Written>(3)}, "", {"written elsewhere"});
  refused({{.signal = {.counter = 6}}}, "", {"offset 6", "where none can be"});
  refused({{.signal = {.counter = 4 | via::Signal::more}}}, "", {"where none can be"});
}

}  // namespace
}  // namespace meshpost::detail
