// Frames that carry marks come as they were sent, or not at all.
#include "world/seal.hpp"

#include <cstring>
#include <random>

#include "support/errors.hpp"
#include "world/greeting.hpp"
#include "world/wire.hpp"

namespace meshpost::wire {
namespace {

using test::error_of;
using test::says;

constexpr u32 most_here = 3000;
constexpr std::size_t before_bytes = sizeof(Header) + sizeof(Seal::Mark);

struct Sealed : testing::Test {
  u64 const seed = std::random_device{}();
  testing::ScopedTrace const trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};
  Digest const key = random_bytes();

  u64 below(u64 limit) { return random() % limit; }
  // Each frame as it goes over a connection; its channel is its number.
  std::vector<std::string> frames(std::size_t count) {
    Seal seal(key);
    std::vector<std::string> all(count);
    for (u32 i = 0; i < count; ++i) {
      std::string bytes(below(3) == 0 ? 0 : below(200), '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      pack_onto(all[i], {.type = Type::post, .channel = i, .sequence = random()}, bytes, &seal);
    }
    return all;
  }
  Cutter cutter() const {
    Cutter fresh(0);
    fresh.trust(most_here, Seal(key));
    return fresh;
  }
  // How many frames came, all as they were sent, before one was refused.
  struct Came {
    u32 frames = 0;
    bool refused = false;
  };
  Came come(std::string const& stream, std::vector<std::string> const& sent) {
    auto cutter = this->cutter();
    Came came;
    try {
      for (std::size_t at = 0; at < stream.size();) {
        auto const size = std::min<std::size_t>(1 + below(300), stream.size() - at);
        cutter.add(stream.data() + at, size);
        at += size;
        while (auto const frame = cutter.next()) {
          auto const& right = sent.at(came.frames);
          EXPECT_EQ(std::memcmp(&frame->header, right.data(), sizeof(Header)), 0);
          EXPECT_EQ(frame->bytes,
                    frame->bytes.empty() ? "" : right.substr(before_bytes, frame->header.size));
          ++came.frames;
        }
      }
    } catch (Error const& error) {
      EXPECT_TRUE(says(error, Kind::bad_argument, {"changed on its way"}));
      came.refused = true;
    }
    return came;
  }
};

std::string joined(std::vector<std::string> const& all) {
  std::string stream;
  for (auto const& one : all) stream += one;
  return stream;
}

TEST_F(Sealed, frames_come_as_they_were_sent_whatever_pieces_they_come_in) {
  for (int round = 0; round < 50; ++round) {
    auto const sent = frames(1 + below(20));
    auto const came = come(joined(sent), sent);
    EXPECT_EQ(came.frames, sent.size());
    EXPECT_FALSE(came.refused);
  }
}

TEST_F(Sealed, frames_with_bits_changed_anywhere_are_refused) {
  auto const sent = frames(6);
  auto const right = joined(sent);
  for (std::size_t bit = 0; bit < right.size() * 8; bit += 1 + below(5)) {
    auto changed = right;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    auto const came = come(changed, sent);
    ASSERT_TRUE(came.refused) << "bit " << bit;
    ASSERT_LT(came.frames, sent.size());
  }
}

TEST_F(Sealed, frames_that_are_missing_repeated_or_swapped_are_refused) {
  for (int round = 0; round < 200; ++round) {
    auto const sent = frames(8);
    auto stream = sent;
    auto const at = static_cast<long>(below(7));
    switch (round % 3) {
      case 0: stream.erase(stream.begin() + at); break;
      case 1: stream.insert(stream.begin() + at, sent[static_cast<std::size_t>(at)]); break;
      default: std::swap(stream[static_cast<std::size_t>(at)], stream.back()); break;
    }
    auto const came = come(joined(stream), sent);
    ASSERT_TRUE(came.refused);
    ASSERT_LE(came.frames, static_cast<u32>(at) + 1);
  }
}

// Or it would wait for 3000 bytes that never come.
TEST_F(Sealed, a_size_that_was_changed_is_refused_before_the_bytes_are_there) {
  auto changed = frames(1)[0].substr(0, before_bytes);
  u32 const size = most_here;
  std::memcpy(changed.data(), &size, sizeof size);
  auto cutter = this->cutter();
  cutter.add(changed.data(), changed.size());
  EXPECT_TRUE(says(error_of([&] { cutter.next(); }), Kind::bad_argument, {"changed on its way"}));
}

TEST_F(Sealed, keys_differ_by_direction_and_challenges_and_both_ends_have_the_same) {
  Secret const secret(key), other(random_bytes());
  Digest const hub = random_bytes(), mine = random_bytes();
  auto const one = greeting::keys_of_process_0(hub, mine, secret);
  auto const two = greeting::keys_of_other(mine, hub, secret);
  EXPECT_EQ(one.out, two.in);
  EXPECT_EQ(one.in, two.out);
  EXPECT_NE(one.in, one.out);
  EXPECT_NE(greeting::keys_of_process_0(hub, hub, secret).out, one.out);
  EXPECT_NE(greeting::keys_of_process_0(mine, hub, secret).out, one.out);
  EXPECT_NE(greeting::keys_of_process_0(hub, mine, other).out, one.out);
}

}  // namespace
}  // namespace meshpost::wire
