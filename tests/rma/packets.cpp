// A packet is whole: a load finds the words and the flag of one store, even while another rank
// overwrites it. The lanes depend on that (rma/detail/via/lane/lane.hpp).
#include "support/worlds.hpp"

namespace meshpost {
namespace {

constexpr u32 places = 512;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr u32 laps = 1000;
#else
constexpr u32 laps = 20'000;  // so many that two threads often use the same one
#endif

MESHPOST_FN u32 word_of(u32 flag, u32 place, u32 number) {
  return static_cast<u32>(test::mixed(flag, place, number));
}

struct Look {
  u32 flag;
  bool torn;
};

MESHPOST_FN Look look(Packet const* packet, u32 place) {
  u32 words[4];
#if defined(__CUDA_ARCH__)
  memory::load_packet(packet, words);
  u32 const flag = words[memory::packet_words];
#else
  u32 const flag = memory::load_relaxed(&packet->word[3]);
  if (!memory::load_packet(packet, words, flag)) return {flag, false};  // it was just overwritten
#endif
  bool torn = false;
  for (u32 k = 0; k < memory::packet_words && flag != 0; ++k)
    torn |= words[k] != word_of(flag, place, k);
  return {flag, torn};
}

/// Ranks of the first half overwrite packets at their partners in the second half, which read them
/// all the time.
struct Overwritten {
  Window<Packet> packets;
  test::Findings torn, missing;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    if (self.id() < half) return write(self, RankId{self.id() + half});
    if (self.id() >= 2 * half) return;
    auto const mine = packets.local(self);
    do
      for (u32 i = self.thread(); i < places; i += self.threads())
        torn.add(self, look(&mine[i], i).torn);
    while (!self.test(packets, Tag{0}));
    for (u32 i = self.thread(); i < places; i += self.threads())
      missing.add(self, look(&mine[i], i).flag != laps);
  }
  MESHPOST_FN void write(Rank& self, RankId partner) const {
    auto const& state = self.state();
    auto const& window = packets.info();
    auto* const there =
        reinterpret_cast<Packet*>(state.heap + state.device_of(partner) * state.stride +
                                  window.offset + partner % self.local_size() * window.pitch);
    for (u32 lap = 1; lap <= laps; ++lap) {
      for (u32 i = self.thread(); i < places; i += self.threads()) {
        u32 words[memory::packet_words];
        for (u32 k = 0; k < memory::packet_words; ++k) words[k] = word_of(lap, i, k);
        memory::store_packet(&there[i], words, lap);
      }
      self.test(packets, Tag{1});  // on a CPU device others may have to run
    }
    self.publish();
    self.notify(packets, partner, Tag{0});
  }
};

TEST(Packets, are_whole_while_they_are_overwritten) {
  World world(test::options(test::on_gpus() ? 0 : 4));
  auto const torn = test::make_findings(world), missing = test::make_findings(world);
  auto const packets = world.window<Packet>(places, Tags{2});
  world.run(Overwritten{packets, torn, missing});
  EXPECT_EQ(test::total(world, torn), 0u);
  EXPECT_EQ(test::total(world, missing), 0u);
}

}  // namespace
}  // namespace meshpost
