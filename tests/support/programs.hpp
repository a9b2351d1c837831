#pragma once
#include "support/worlds.hpp"

// Programs as data: the program of every rank is drawn on the host (support/oracle.hpp) and read by
// its kernel.

namespace meshpost::test {

enum class What : u32 {
  nothing,
  put,
  put_notify,
  notify,
  wait,
  test,  ///< until it returns true
  get,
  put_value,
  wait_until,
  flush,
  barrier
};

/// One operation of one rank. A window has a region for each sender at each rank.
struct Command {
  What what = What::nothing;
  u32 peer = 0;
  u32 window = 0;
  u32 value = 0;  ///< seed of the bytes put, counts waited for, or the word put or waited for
  // Bytes in a sender's region: those put, or those read by the get or after the wait. They are in
  // window `in`, in the region of rank `from`.
  u32 offset = 0, size = 0;
  u32 in = 0, from = 0;
  u64 sum = 0;  ///< of the bytes that are read
};

inline constexpr u32 windows = 2;
inline constexpr char const* window_names[windows] = {"one inbox", "other inbox"};
/// Bytes of a region; puts are up to half as long. If ranks are few, some puts are so long that a
/// proxy reads them later, or that a network's engine writes them.
constexpr u32 region_of(u32 ranks) { return ranks <= 12 ? 96 << 10 : 8 << 10; }
/// A run begins at one of so many tags: its counters differ from those of the previous run.
inline constexpr u32 first_tags = 64;

MESHPOST_FN constexpr u8 byte_of(u32 value, u32 b) {
  return static_cast<u8>((value ^ b * 0x9e3779b9u) >> 24);
}
/// A hash of bytes and their places.
template <class Bytes>
MESHPOST_FN constexpr u64 sum_of(Bytes const& bytes, u64 from, u32 size) {
  u64 sum = 0;
  for (u32 b = 0; b < size; ++b)
    sum += (u64{bytes[from + b]} + 1) * ((2 * u64{b} + 1) * 0x9e3779b97f4a7c15ull);
  return sum;
}

/// Executes the programs.
struct Interpreter {
  static constexpr u32 slots = 8;

  Window<u8> inbox[windows];
  Window<u64> words;   ///< one for each sender
  Window<u8> staging;  ///< slots
  Window<Command> programs;
  u32 first, length;  ///< of the commands, those of this run
  u32 first_tag;      ///< of rank 0; a tag for each sender
  u32 region;         ///< bytes
  Findings findings;

  MESHPOST_FN u64 slot() const { return u64{region} + 16; }

  MESHPOST_FN void operator()(Rank& self) const {
    auto const program = programs.local(self);
    for (u32 i = 0, used = 0; i < length; ++i) {
      Command const command = program[first + i];
      RankId const peer{command.peer};
      auto const& window = inbox[command.window];
      switch (command.what) {
        case What::nothing: break;
        case What::put: self.put(place(self, command), source(self, command, used++)); break;
        case What::put_notify:
          if (i % 2 == 0)
            self.put_notify(place(self, command), source(self, command, used++), tag_of(self.id()));
          else
            self.put_notify(self.prepare_put_notify(
                place(self, command), source(self, command, used++), tag_of(self.id())));
          break;
        case What::notify:
          if (i % 2 == 0) self.notify(window, peer, tag_of(self.id()));
          else self.put_notify(self.prepare_notify(window, peer, tag_of(self.id())));
          break;
        case What::wait:
          if (i % 2 == 0) self.wait(window, tag_of(command.peer), command.value, peer);
          else self.wait(self.prepare_wait(window, tag_of(command.peer), command.value, peer));
          check(self, inbox[command.in].local(self), u64{command.from} * region + command.offset,
                command);
          break;
        case What::test:
          while (!self.test(window, tag_of(command.peer), command.value)) continue;
          check(self, inbox[command.in].local(self), u64{command.from} * region + command.offset,
                command);
          break;
        case What::get: {
          auto const out = slot_of(self, command, used++);
          self.get(out, inbox[command.in].at(peer, u64{command.from} * region + command.offset));
          check(self, out, 0, command);
          break;
        }
        case What::put_value: self.put_value(words.at(peer, self.id()), command.value); break;
        case What::wait_until:
          self.wait_until(words.local(self).subspan(command.peer, 1), Compare::greater_equal,
                          command.value);
          check(self, inbox[command.in].local(self), u64{command.from} * region + command.offset,
                command);
          break;
        case What::flush: self.flush(window); break;
        case What::barrier: self.barrier();
      }
    }
  }

 private:
  MESHPOST_FN Tag tag_of(u32 sender) const { return Tag{first_tag + sender}; }
  MESHPOST_FN RemoteSpan<u8> place(Rank& self, Command const& command) const {
    return inbox[command.window].at(RankId{command.peer}, u64{self.id()} * region + command.offset);
  }
  // Slots are used in turn. A slot is used again only after the puts that read it have read it.
  MESHPOST_FN LocalSpan<u8> slot_of(Rank& self, Command const& command, u32 used) const {
    if (used % slots == 0)
      for (auto const& window : inbox) self.flush(window);
    return staging.local(self).subspan(u64{used} % slots * slot() + command.value % 16,
                                       command.size);
  }
  MESHPOST_FN LocalSpan<u8> source(Rank& self, Command const& command, u32 used) const {
    auto const out = slot_of(self, command, used);
    self.each(command.size, [&](u64 b) { out[b] = byte_of(command.value, static_cast<u32>(b)); });
    return out;
  }
  MESHPOST_FN void check(Rank& self, LocalSpan<u8> const& bytes, u64 from,
                         Command const& command) const {
    if (self.thread() == 0) findings.add(self, sum_of(bytes, from, command.size) != command.sum);
  }
};

}  // namespace meshpost::test
