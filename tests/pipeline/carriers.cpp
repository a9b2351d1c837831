// Levels that move a chunk's pieces themselves (Level::carry).
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "pipelines.hpp"

namespace meshpost::test {
namespace {

// The far end of a connection: it keeps what comes.
struct FarEnd {
  std::vector<u8> kept;
  char address = 0;  // stands for it
  std::mutex mutex{};
  std::condition_variable changed{};
  bool stuck_from_400 = false, ended = false;

  Level level() {
    return {test_devices()[0], MemoryKind::pageable, 0, [this](auto const& segments) {
              for (auto const& one : segments) take(one);
            }};
  }
  void take(Segment const& one) {
    std::unique_lock lock(mutex);
    if (stuck_from_400 && kept.size() >= 400) {
      changed.wait(lock, [&] { return ended; });
      throw Error(Kind::peer_lost, "carry", "ended", "no");
    }
    EXPECT_EQ(one.target, &address);
    auto const* const begin = static_cast<u8 const*>(one.source);
    kept.insert(kept.end(), begin, begin + one.size.value);
  }
  void end() {
    std::scoped_lock const lock(mutex);
    ended = true;
    changed.notify_all();
  }
};

struct Sent {
  FarEnd far;
  std::vector<u8> input;
  PipelineOptions options;
  explicit Sent(u32 levels) {
    std::mt19937_64 random(std::random_device{}());
    input = random_data(random, 1000);
    options.levels = some_levels(levels - 1);
    options.levels.push_back(far.level());
    options.items = 1000, options.chunk = 100, options.item = Bytes{1};
    options.back = false;
    options.segments = [this](ChunkMove const& move) {
      return std::vector<Segment>{move.whole(&far.address, input.data() + move.first)};
    };
  }
};

TEST(PipelineCarriers, bring_all_chunks_in_order_from_memory_and_from_buffers) {
  for (u32 const levels : {2, 3}) {
    Sent sent(levels);
    auto const result = Pipeline(sent.options).run();
    EXPECT_EQ(sent.far.kept, sent.input) << levels;
    EXPECT_EQ(result.bytes, 1000u * (levels - 1));
  }
}

TEST(PipelineCarriers, that_wait_are_ended_when_another_leg_fails) {
  Sent sent(3);
  sent.far.stuck_from_400 = true;
  auto const segments = sent.options.segments;
  sent.options.segments = [&, segments](ChunkMove const& move) {
    // The leg before the one that is stuck.
    if (move.level == 1 && move.chunk == 5)
      throw Error(Kind::bad_argument, "load", "planted", "no");
    return segments(move);
  };
  std::atomic<int> calls{0};
  std::string text;
  sent.options.failed = [&](Error const& error) {
    ++calls;
    text = error.what();
    sent.far.end();
  };
  EXPECT_TRUE(says(error_of([&] { Pipeline(sent.options).run(); }), Kind::bad_argument,
                   {"LOAD^1 of chunk 5", "planted"}));
  EXPECT_EQ(calls, 1);
  EXPECT_NE(text.find("LOAD^1 of chunk 5"), text.npos) << text;
}

TEST(PipelineCarriers, where_chunks_rest_are_refused) {
  Sent sent(3);
  sent.options.back = true;  // then they rest at the last level, and return
  EXPECT_TRUE(says(error_of([&] { Pipeline{sent.options}; }), Kind::bad_argument,
                   {"level 2 has a function to carry pieces", "where the data are, or stay"}));
  Sent middle(3);
  std::swap(middle.options.levels[1], middle.options.levels[2]);
  EXPECT_TRUE(says(error_of([&] { Pipeline{middle.options}; }), Kind::bad_argument,
                   {"level 1 has a function to carry pieces"}));
}

}  // namespace
}  // namespace meshpost::test
