// Content of a message from another proxy: either a message that can be carried out, or an error.
#include "rma/via/proxy/inbound.hpp"

#include <cstring>
#include <random>

#include "support/errors.hpp"

namespace meshpost::detail {
namespace {

using test::error_of;
using test::says;

struct WireMessages : testing::Test {
  u64 const seed = std::random_device{}();
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};

  u64 below(u64 limit) { return random() % limit; }
  // A valid message.
  WireMessage any(std::string& payload) {
    using enum WireMessage::Type;
    WireMessage wire{.run = 3};
    auto& message = wire.message;
    message.type = static_cast<WireMessage::Type>(below(static_cast<u64>(types)));
    message.device = static_cast<u32>(below(8));
    message.address = below(1 << 20) * 8;
    u64 const word = u64{1} << below(4);
    u64 const some = below(below(4) ? 600 : 3);
    payload.assign(!wire.has_bytes() ? 0 : message.type == store ? word : some, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    message.bytes = wire.has_bytes() ? payload.size() : word;
    if (message.type == put)
      message.signal = via::Signal::of(below(1000) * 4, below(1000) * via::Signal::unit, 7);
    wire.request = below(100);
    return wire;
  }
  static WireMessage read(WireMessage const& wire, std::string const& payload) {
    return read_message({{reinterpret_cast<char const*>(&wire), sizeof wire},
                         payload,
                         wire.written != WireMessage::Written::no});
  }
};

TEST_F(WireMessages, are_read_as_they_were_sent) {
  for (int round = 0; round < 1000; ++round) {
    std::string payload;
    auto const sent = any(payload);
    auto const come = read(sent, payload);
    ASSERT_EQ(std::memcmp(&come, &sent, sizeof sent), 0);
  }
}

// Only a faulty process sends such bytes: the channel detects changes by the network.
TEST_F(WireMessages, with_any_bytes_are_read_or_refused) {
  u32 refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string payload;
    auto wire = any(payload);
    char* const bytes = reinterpret_cast<char*>(&wire);
    for (u64 i = 0; i < 1 + below(40); ++i) bytes[below(sizeof wire)] = static_cast<char>(random());
    try {
      read_message(
          {{bytes, below(20) ? sizeof wire : below(300) % sizeof wire}, payload, below(2) == 0});
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::peer_lost);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50'000u);
}

TEST_F(WireMessages, whose_fields_cannot_be_are_refused) {
  auto const refused = [](WireMessage const& wire, std::string const& payload,
                          std::initializer_list<std::string_view> pieces) {
    EXPECT_TRUE(says(error_of([&] { read(wire, payload); }), Kind::peer_lost, pieces));
  };
  using enum WireMessage::Type;
  using Written = WireMessage::Written;
  refused({{.type = types}}, "", {"a message of type 5"});
  refused({{.type = static_cast<WireMessage::Type>(77)}}, "", {"a message of type 77"});
  refused({{.bytes = 3}}, "four", {"sent 4 bytes", "for 3"});
  refused({{.type = get}}, "four", {"sent 4 bytes"});
  refused({{.bytes = 3, .type = store}}, "abc", {"a word of 3 bytes"});
  refused({{.address = 12, .bytes = 8, .type = store}}, "8 bytes.", {"8 bytes at offset 12"});
  refused({{.bytes = 4, .type = store}, 0, Written::to_slot}, "", {"written elsewhere"});
  refused({{.bytes = 4}, 0, static_cast<Written>(3)}, "", {"written elsewhere"});
  refused({{.signal = {.counter = 6}}}, "", {"offset 6", "where none can be"});
  refused({{.signal = {.counter = 4 | via::Signal::more}}}, "", {"where none can be"});
}

}  // namespace
}  // namespace meshpost::detail
