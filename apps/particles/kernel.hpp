#pragma once
// Both versions: the kernel of all steps, and the kernels that a host starts for each step.
#include "phases.hpp"
#include "shape.hpp"

namespace particles {

/// Threads of a rank on a GPU: a warp for each 32 particles of four segments of the usual size. CPU
/// devices take their default, one.
inline constexpr int gpu_threads = 512;

/// The one kernel. In each step a rank collects the particles of its segments and of a segment on
/// each side from the lists of this step, moves its own, and writes them to the lists of the next
/// step. Then it tells its two neighbours. That is the only synchronization between ranks.
///
/// Why no rank reads memory that is being written: step n reads lists n % 2 and writes the others.
/// A rank owns at least two segments, so it reads lists of its neighbours only. Before step n it
/// has consumed both neighbours' notifications of step n - 1, which each sends after its own step
/// n - 1. So each has read all of lists (n - 1) % 2, which step n overwrites. This holds in shared
/// memory of one device and in the halo that a put fills. And the lists n % 2 are there. The
/// counters of the two windows take turns, too: a neighbour that is a step ahead can't count for
/// this step. It can't be two steps ahead, since it waits for this rank. So both neighbours raise
/// one counter.
template <class Real>
struct Simulation {
  static constexpr int max_threads = gpu_threads;
  /// Its messages are too long for lanes, and its waits are quicker without.
  static constexpr bool uses_lanes = false;
  static constexpr meshpost::Tag written{0};

  meshpost::Window<std::byte> lists[2];  // parts are a rank's segments and the halo
  meshpost::Window<Trouble> troubles;    // one for each thread
  Shape shape;
  Model<Real> model;
  u32 at_once;  // segments whose contents fit into the scratch memory, without those beside them
  u32 first_step, steps;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    Range const own = shape.of_rank(self.id());
    if (own.size() == 0) return;
    Neighbours const neighbours = neighbours_of(self);
    auto& trouble = troubles.local(self)[self.thread()];
    Content<Real> content(self.scratch<std::byte>().data(), at_once + 2, shape.chunks);
    for (u32 step = first_step; step < first_step + steps; ++step) {
      std::byte* const in = lists[step % 2].local(self).data();
      std::byte* const out = lists[1 - step % 2].local(self).data();
      bool good = true;
      for (u32 begin = own.begin; begin < own.end; begin += at_once) {
        Range const now{begin, own.end - begin < at_once ? own.end : begin + at_once};
        if (begin > own.begin) self.sync();  // before the content is overwritten
        content.segments = now.size() + 2;
        u64 const offset = (begin - own.begin) * List<Real>::size(shape.chunks);
        good = collect(self, {in + offset, shape.chunks}, content, now, step, trouble) && good;
        self.sync();
        good = advance(self, content, {out + offset, shape.chunks}, now, step, trouble) && good;
      }
      if (self.any(!good)) self.fail("see the record of this thread");
      tell(self, neighbours, step, own);
    }
  }

 private:
  MESHPOST_FN bool collect(meshpost::Rank& self, Lists<Real> const& from,
                           Content<Real> const& content, Range now, u32 step,
                           Trouble& trouble) const {
    bool good = true;
    u32 const count = now.size() + 2 * halo;
    Team::of(self.thread(), self.threads()).each(count * shape.chunks, [&](u32 unit) {
#if defined(__CUDA_ARCH__)  // the first chunks of all lists first: the last ones are mostly empty
      u32 const j = unit % count, chunk = unit / count;
#else  // list after list: a core then has in its cache what it reads and writes next
      u32 const j = unit / shape.chunks, chunk = unit % shape.chunks;
#endif
      u32 const segment = now.begin + j - halo;
      good = collect_chunk(from, j, chunk, content, segment, step, trouble) && good;
    });
    return good;
  }

  MESHPOST_FN bool advance(meshpost::Rank& self, Content<Real> const& content,
                           Lists<Real> const& to, Range now, u32 step, Trouble& trouble) const {
    bool good = true;
    u32 units = 0;  // only chunks with particles; one at least, which writes the count
    for (u32 k = 1; k <= now.size(); ++k) units += chunks_of(content.count[k]);
    Team::of(self.thread(), self.threads()).each(units, [&](u32 unit) {
      u32 k = 1, chunk = unit;
      for (; chunk >= chunks_of(content.count[k]); ++k) chunk -= chunks_of(content.count[k]);
      good =
          move_chunk(model, content, k, chunk, to[k + 1], now.begin + k - 1, step, trouble) && good;
    });
    return good;
  }

  MESHPOST_FN static u32 chunks_of(u32 count) {
    return count <= lanes ? 1 : (count + lanes - 1) / lanes;
  }

  /// The owners below and above, and where a put of this rank begins in the part of the one below.
  /// Steps don't compute it again: divisions are long on a GPU.
  struct Neighbours {
    u32 below, above;
    u64 in_below;
    bool far_below, far_above;  // on another device
  };
  MESHPOST_FN Neighbours neighbours_of(meshpost::Rank const& self) const {
    Neighbours all{shape.below(self.id()), shape.above(self.id()), 0, false, false};
    if (all.below != Shape::none) {
      all.in_below = (shape.of_rank(all.below).size() + halo) * List<Real>::size(shape.chunks);
      all.far_below = all.below / shape.ranks_per_device != self.device();
    }
    all.far_above = all.above != Shape::none && all.above / shape.ranks_per_device != self.device();
    return all;
  }

  /// A put takes the two lists that the neighbour needs, the second one as far as it is filled. On
  /// one device source and target are the same lists: then it copies nothing and only notifies.
  MESHPOST_FN void tell(meshpost::Rank& self, Neighbours const& neighbours, u32 step,
                        Range own) const {
    using meshpost::RankId;
    auto const& window = lists[1 - step % 2];
    auto const mine = window.local(self);
    u64 const size = List<Real>::size(shape.chunks);
    Lists<Real> const out{mine.data(), shape.chunks};
    u32 senders = 0;
    // A loop over both sides: the code of a put is long, and so it is there once.
    for (u32 up = 0; up < 2; ++up) {
      u32 const to = up ? neighbours.above : neighbours.below;
      if (to == Shape::none) continue;
      u32 const first = up ? own.size() : halo;
      bool const far = up ? neighbours.far_above : neighbours.far_below;
      u64 const filled = far ? out[first + 1].used_bytes() : size;  // saves a load where it can
      self.put_notify(window.at(RankId{to}, up ? 0 : neighbours.in_below),
                      mine.subspan(first * size, size + filled), written);
      ++senders;
    }
    if (senders != 0) self.wait(window, written, senders);
  }
};

/// A device's memory in the version of two models: lists of its segments and the halo; contents of
/// its segments and of one on each side; a record for each thread.
template <class Real>
struct DeviceState {
  Lists<Real> lists;
  Content<Real> content;
  Trouble* troubles;
  Range own;
  Model<Real> model;
  u32 step;
};

/// The first kernel of a step of that version. It reads lists, which a message may fill only after
/// the second kernel, and writes contents.
template <class Real>
struct Collect {
  DeviceState<Real> on;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    u32 const count = on.own.size() + 2 * halo;
    Team::of(first, stride).each(count * on.content.chunks, [&](u32 unit) {
      u32 const j = unit / on.content.chunks, segment = on.own.begin + j - halo;
      collect_chunk(on.lists, j, unit % on.content.chunks, on.content, segment, on.step,
                    on.troubles[first]);
    });
  }
};

/// The second one. It reads contents and writes the lists of the device's own segments.
template <class Real>
struct Move {
  DeviceState<Real> on;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    u32 const chunks = on.content.chunks;
    Team::of(first, stride).each(on.own.size() * chunks, [&](u32 unit) {
      u32 const place = unit / chunks;
      move_chunk(on.model, on.content, place + 1, unit % chunks, on.lists[place + halo],
                 on.own.begin + place, on.step, on.troubles[first]);
    });
  }
};

}  // namespace particles
