// The proxy reads the source of a long put out of a window after the put has returned, and before
// flush() returns. Other memory it reads before the put returns.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/host_hooks.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;

// Of one run: rank 0's put has returned; the proxy may read.
struct ReadMoments {
  std::atomic<bool> put_returned{false}, may_read{false};
};

// Puts to the last rank. The bits of its result: the proxy might have read when the put returned,
// and when flush() did.
struct PutsWhatIsReadLate {
  static constexpr u64 size = u64{64} << 10;
  static constexpr u32 behind_put = 1, behind_flush = 2;

  Window<char> window;
  bool by_scratch;
  ReadMoments* moments;
  u32* found;

  void operator()(Rank& self) const {
    if (self.id() != 0) return;
    LocalSpan<char> const source =
        by_scratch ? self.scratch<char>(size) : window.local(self).subspan(0, size);
    self.put(window.at(RankId{self.size() - 1}), source);
    *found |= moments->may_read ? behind_put : 0;
    moments->put_returned = true;
    self.flush(window);
    *found |= moments->may_read ? behind_flush : 0;
  }
};

u32 found_by_puts(bool by_scratch) {
  auto options = test::options(1, "cpu:2");
  options.apart = true;
  World world(options);
  auto const window = world.window<char>(PutsWhatIsReadLate::size, Tags{1}, "far");
  ReadMoments moments;
  u32 found = 0;
  // Nothing is read for 50 ms, and out of the window not before the put has returned.
  hooks::install_host_hook([&](std::string_view place) {
    if (place != "empty a ring" || moments.may_read) return;
    auto const begin = std::chrono::steady_clock::now();
    while (!by_scratch && !moments.put_returned && std::chrono::steady_clock::now() - begin < 10s)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
    moments.may_read = true;
  });
  world.run(PutsWhatIsReadLate{window, by_scratch, &moments, &found},
            {.scratch = Bytes{PutsWhatIsReadLate::size}});
  hooks::install_host_hook(nullptr);
  return found;
}

TEST(LateReads, a_long_put_out_of_a_window_returns_before_its_source_is_read_and_flush_behind_it) {
  EXPECT_EQ(found_by_puts(false), PutsWhatIsReadLate::behind_flush);
}

TEST(LateReads, a_long_put_out_of_scratch_memory_returns_when_its_source_was_read) {
  EXPECT_EQ(found_by_puts(true), PutsWhatIsReadLate::behind_put | PutsWhatIsReadLate::behind_flush);
}

}  // namespace
}  // namespace meshpost
