// Changes between two processes are detected. All that arrives is right.
#include "world/sides.hpp"

namespace meshpost {
namespace {

using namespace test;

using TlsChanges = TlsTest;

std::vector<std::string> records_of(std::string_view stream) {
  std::vector<std::string> records;
  while (stream.size() >= 5) {
    auto const at = [&](std::size_t i) {
      return std::size_t{static_cast<unsigned char>(stream[i])};
    };
    auto const size = 5 + at(3) * 256 + at(4);
    records.emplace_back(stream.substr(0, size));
    stream.remove_prefix(size);
  }
  EXPECT_TRUE(stream.empty());
  return records;
}

std::string joined(std::vector<std::string> const& all) {
  std::string stream;
  for (auto const& one : all) stream += one;
  return stream;
}

// Some bits mean nothing. Others make a message longer, so its end never comes.
TEST_F(TlsChanges, with_any_bit_of_the_greeting_changed_say_nothing_wrong) {
  auto const said = sides_.greet();
  u32 refused = 0, rounds = 0;
  for (std::size_t message = 0; message < said.size(); ++message)
    for (std::size_t bit = below(30); bit < said[message].size() * 8; bit += 1 + below(30)) {
      ++rounds;
      auto [caller, acceptor] = Sides(context_);
      try {
        for (std::size_t step = 0; step < 3; ++step) {
          auto& from = step == 1 ? acceptor : caller;
          auto& to = step == 1 ? caller : acceptor;
          auto stream = from.give();
          if (step == message && bit / 8 < stream.size()) flip(stream, bit);
          to.take(stream);
        }
        if (caller.tls.is_proven() && acceptor.tls.is_proven()) {
          caller.say("a message");
          acceptor.take(caller.give());
          EXPECT_EQ(acceptor.text, "a message");
        }
      } catch (Error const& error) {
        EXPECT_TRUE(is_garbage_or_other_secret(error)) << error.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, rounds / 2);
}

// The messages before the change are right, and none comes after it.
TEST_F(TlsChanges, with_any_bit_of_a_message_changed_pass_on_nothing_of_it) {
  std::vector<std::string> const messages{bytes(40), bytes(1), bytes(300)};
  for (std::size_t bit = 0, end = 1; bit < end; bit += 1 + below(12)) {
    Sides sides(context_);
    auto& [caller, acceptor] = sides;
    sides.greet();
    for (auto const& message : messages) caller.say(message);
    auto records = records_of(caller.give());
    ASSERT_EQ(records.size(), 3u);
    end = records[1].size() * 8;
    flip(records[1], bit);
    auto const stream = joined(records);
    try {
      for (std::size_t at = 0; at < stream.size();) {
        auto const piece = stream.substr(at, 1 + below(200));
        at += piece.size();
        acceptor.take(piece);
      }
      EXPECT_EQ(bit / 8, 3u);  // the size became larger: the rest never comes
    } catch (Error const& error) {
      EXPECT_TRUE(says(error, Kind::bad_argument, {"a message was changed on its way"}));
    }
    ASSERT_EQ(acceptor.text, messages[0]) << "bit " << bit;
  }
}

TEST_F(TlsChanges, refuse_messages_that_are_missing_repeated_swapped_or_another_connections) {
  for (int round = 0; round < 60; ++round) {
    Sides sides(context_);
    auto& [caller, acceptor] = sides;
    sides.greet();
    std::vector<std::string> messages;
    for (int i = 0; i < 8; ++i) {
      messages.push_back(bytes(1 + below(200)));
      caller.say(messages.back());
    }
    auto records = records_of(caller.give());
    auto const at = below(7);
    auto const place = records.begin() + static_cast<long>(at);
    bool const repeated = round % 4 == 1;
    switch (round % 4) {
      case 0: records.erase(place); break;
      case 1: records.insert(place, std::string(*place)); break;
      case 2: std::swap(*place, records.back()); break;
      default: {
        Sides others(context_);
        others.greet();
        for (auto const& message : messages) others.caller.say(message);
        *place = records_of(others.caller.out)[at];
      }
    }
    EXPECT_TRUE(says(error_of([&] { acceptor.take(joined(records)); }), Kind::bad_argument,
                     {"a message was changed on its way, or left out"}));
    messages.resize(at + (repeated ? 1 : 0));
    EXPECT_EQ(acceptor.text, joined(messages));
    // The other end is told, and this end sends nothing any more.
    EXPECT_TRUE(says(error_of([&] { caller.take(acceptor.give()); }), Kind::bad_argument,
                     {"the other end says that a message was changed on its way"}));
    acceptor.say("more");
    EXPECT_TRUE(acceptor.out.empty());
  }
}

TEST_F(TlsChanges, that_are_proven_refuse_garbage) {
  sides_.greet();
  EXPECT_TRUE(says(error_of([&] { acceptor_.take(std::string(4096, '\xee')); }), Kind::bad_argument,
                   {"a message was changed on its way"}));
}

}  // namespace
}  // namespace meshpost
