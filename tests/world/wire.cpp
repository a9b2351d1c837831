// Frames can be cut anywhere. Bytes that are no frame are detected, whatever they are.
#include "world/wire.hpp"

#include <cstring>
#include <random>

#include "support/errors.hpp"

namespace meshpost::wire {
namespace {

using test::error_of;
using test::says;

class Seeded : public testing::Test {
 protected:
  u64 const seed_ = std::random_device{}();
  testing::ScopedTrace const trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937_64 random_{seed_};

  u64 below(u64 limit) { return random_() % limit; }
  std::string bytes(u64 size) {
    std::string some(size, '\0');
    for (char& c : some) c = static_cast<char>(random_());
    return some;
  }
};
using Frames = Seeded;
using Garbage = Seeded;
using Values = Seeded;

TEST_F(Frames, come_as_they_were_sent_whatever_pieces_they_come_in) {
  for (int round = 0; round < 50; ++round) {
    std::vector<Frame> sent(1 + below(20));
    std::string stream;
    for (auto& frame : sent) {
      frame.bytes = bytes(below(4) == 0 ? 0 : below(3000));
      frame.header = {0, static_cast<Type>(below(static_cast<u64>(Type::count))),
                      static_cast<u32>(random_()), static_cast<u32>(random_()), random_()};
      stream += pack(frame.header, frame.bytes);
    }
    Cutter cutter(3000);
    std::size_t next = 0;
    for (std::size_t at = 0; at < stream.size();) {
      auto const size = std::min<std::size_t>(1 + below(below(2) ? 10 : 5000), stream.size() - at);
      cutter.buffer().append(stream, at, size);
      at += size;
      while (auto const frame = cutter.next()) {
        ASSERT_LT(next, sent.size());
        auto const& right = sent[next++];
        ASSERT_EQ(frame->bytes, right.bytes);
        ASSERT_EQ(frame->header.size, right.bytes.size());
        ASSERT_EQ(frame->header.type, right.header.type);
        ASSERT_EQ(frame->header.process, right.header.process);
        ASSERT_EQ(frame->header.channel, right.header.channel);
        ASSERT_EQ(frame->header.sequence, right.header.sequence);
      }
    }
    EXPECT_EQ(next, sent.size());
  }
}

TEST(Cutter, waits_for_the_rest_of_a_frame) {
  auto const packed = pack({.type = Type::message}, "bytes");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    Cutter cutter(100);
    cutter.buffer().append(packed, 0, size);
    ASSERT_FALSE(cutter.next());
    cutter.buffer().append(packed, size);
    ASSERT_TRUE(cutter.next());
    ASSERT_FALSE(cutter.next());
  }
}

TEST(Cutter, refuses_by_the_header_alone_what_is_too_large_or_unknown) {
  Header header{.size = 101, .type = Type::message};
  Cutter cutter(100);
  cutter.buffer().append(reinterpret_cast<char const*>(&header), sizeof header);
  EXPECT_TRUE(says(error_of([&] { cutter.next(); }), Kind::bad_argument,
                   {"it claims 101 bytes; there may be 100"}));
  Cutter larger(101);
  larger.buffer().append(reinterpret_cast<char const*>(&header), sizeof header);
  EXPECT_FALSE(larger.next());
  for (auto const type : {static_cast<u32>(Type::count), ~0u}) {
    Cutter other(100);
    header = {.size = 0, .type = static_cast<Type>(type)};
    other.buffer().append(reinterpret_cast<char const*>(&header), sizeof header);
    EXPECT_TRUE(says(error_of([&] { other.next(); }), Kind::bad_argument,
                     {"there is no type " + std::to_string(type)}));
  }
}

TEST_F(Garbage, becomes_frames_within_the_limit_or_an_error) {
  u32 errors = 0, frames = 0;
  for (int round = 0; round < 100'000; ++round) {
    auto input = bytes(below(120));
    // Usually a header that could be right. Otherwise no bytes behind it would be read.
    for (std::size_t at = 0; below(8) && at + sizeof(Header) <= input.size();
         at += 24 + below(40)) {
      Header const header{static_cast<u32>(below(4) ? below(70) : random_()),
                          static_cast<Type>(below(static_cast<u64>(Type::count) + 1))};
      std::memcpy(input.data() + at, &header, sizeof header);
    }
    Cutter cutter(64);
    try {
      for (std::size_t at = 0; at < input.size();) {
        auto const size = std::min<std::size_t>(1 + below(60), input.size() - at);
        cutter.buffer().append(input, at, size);
        at += size;
        while (auto const frame = cutter.next()) {
          ASSERT_LE(frame->bytes.size(), 64u);
          ASSERT_LT(frame->header.type, Type::count);
          ++frames;
        }
      }
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::bad_argument);
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000u);
  EXPECT_GT(frames, 1000u);
}

TEST_F(Values, come_out_as_they_were_put_in_and_never_from_behind_the_end) {
  for (int round = 0; round < 200; ++round) {
    auto const text = bytes(below(50)), other = bytes(below(50));
    u64 const number = random_();
    auto const packed = Packer().text(text).value(number).text(other).value(u8{7}).take();
    auto const unpack = [&](std::string_view some) {
      Unpacker unpacker(some);
      EXPECT_EQ(unpacker.text(), text);
      EXPECT_EQ(unpacker.value<u64>(), number);
      EXPECT_EQ(unpacker.text(), other);
      EXPECT_EQ(unpacker.value<u8>(), 7);
      EXPECT_TRUE(unpacker.at_end());
    };
    unpack(packed);
    auto const cut = packed.substr(0, below(packed.size()));
    EXPECT_TRUE(says(error_of([&] { unpack(cut); }), Kind::bad_argument, {"bytes too early"}));
  }
}

TEST_F(Garbage, is_unpacked_to_values_of_it_or_an_error) {
  for (int round = 0; round < 100'000; ++round) {
    auto input = bytes(below(40));
    if (input.size() >= 8 && below(2)) {
      u64 const size = below(3) ? below(40) : ~u64{0} - below(16);
      std::memcpy(input.data(), &size, sizeof size);
    }
    Unpacker unpacker(input);
    std::size_t taken = 0;
    try {
      while (!unpacker.at_end()) switch (below(3)) {
          case 0: taken += 8 + unpacker.text().size(); break;
          case 1: (void)unpacker.value<u64>(), taken += 8; break;
          default: (void)unpacker.value<char>(), taken += 1; break;
        }
      ASSERT_EQ(taken, input.size());
    } catch (Error const& error) {
      ASSERT_EQ(error.kind(), Kind::bad_argument);
      ASSERT_LE(taken, input.size());
    }
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(Pack, refuses_what_no_cutter_would_take) {
  EXPECT_TRUE(says(error_of([] { pack({}, std::string(most + 1, 'x')); }), Kind::bad_argument,
                   {"it has 268435457 bytes; there may be 268435456"}));
}
#endif

}  // namespace
}  // namespace meshpost::wire
