// What a channel's message from another proxy may hold: a proxy's message that can be carried out,
// or nothing.
#include "rma/via/proxy/message.hpp"

#include <cstring>
#include <random>

#include "support/errors.hpp"

namespace meshpost::detail {
namespace {

using test::error_of;
using test::says;

struct ProxyMessages : testing::Test {
  u64 const seed = std::random_device{}();
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};

  u64 below(u64 limit) { return random() % limit; }
  // Nothing in it is wrong.
  ProxyMessage any(std::string& payload) {
    using enum ProxyMessage::Type;
    ProxyMessage message{.run = 3};
    message.type = static_cast<ProxyMessage::Type>(below(static_cast<u64>(count)));
    message.device = static_cast<u32>(below(8));
    message.offset = below(1 << 20) * 8;
    message.value = random();
    bool const carries = message.type == put || message.type == answer;
    payload.assign(carries ? below(below(4) ? 600 : 3) : 0, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    message.bytes = carries ? payload.size() : u64{1} << below(4);
    if (message.type == put)
      message.counter = below(1000) * 4, message.sender_word = below(1000) * 4;
    message.request = below(100);
    return message;
  }
  static ProxyMessage read(ProxyMessage const& message, std::string const& payload) {
    return read_message({{reinterpret_cast<char const*>(&message), sizeof message},
                         payload,
                         message.written != ProxyMessage::Written::no});
  }
};

TEST_F(ProxyMessages, are_read_as_they_were_sent) {
  for (int round = 0; round < 1000; ++round) {
    std::string payload;
    auto const sent = any(payload);
    auto const come = read(sent, payload);
    ASSERT_EQ(std::memcmp(&come, &sent, sizeof sent), 0);
  }
}

// A process of another mind: the channel finds what a network has changed.
TEST_F(ProxyMessages, with_any_bytes_are_read_or_refused) {
  u32 refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string payload;
    auto message = any(payload);
    char* const bytes = reinterpret_cast<char*>(&message);
    for (u64 i = 0; i < 1 + below(40); ++i)
      bytes[below(sizeof message)] = static_cast<char>(random());
    try {
      read_message({{bytes, below(20) ? sizeof message : below(300) % sizeof message},
                    payload,
                    below(2) == 0});
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::peer_lost);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50'000u);
}

TEST_F(ProxyMessages, whose_fields_cannot_be_are_refused) {
  auto const refused = [](ProxyMessage const& message, std::string const& payload,
                          std::initializer_list<std::string_view> pieces) {
    EXPECT_TRUE(says(error_of([&] { read(message, payload); }), Kind::peer_lost, pieces));
  };
  using enum ProxyMessage::Type;
  refused({.type = count}, "", {"a message of kind 6"});
  refused({.type = static_cast<ProxyMessage::Type>(77)}, "", {"a message of kind 77"});
  refused({.type = put, .bytes = 3}, "four", {"sent 4 bytes", "for 3"});
  refused({.type = add, .bytes = 0}, "four", {"sent 4 bytes"});
  refused({.type = store, .bytes = 3}, "", {"a word of 3 bytes"});
  refused({.type = store, .offset = 12, .bytes = 8}, "", {"8 bytes at offset 12"});
  refused({.type = add, .written = ProxyMessage::Written::to_slot, .bytes = 4}, "",
          {"written elsewhere"});
  refused({.type = put, .written = static_cast<ProxyMessage::Written>(3), .bytes = 4}, "",
          {"written elsewhere"});
  refused({.type = add, .offset = 6}, "", {"offset 6"});
  refused({.type = put, .counter = 5}, "", {"where none can be"});
  refused({.type = put, .counter = 4, .sender_word = 2}, "", {"where none can be"});
}

}  // namespace
}  // namespace meshpost::detail
