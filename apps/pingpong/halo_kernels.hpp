#pragma once
// The kernels of a step: plain ones, for hosts and streams, and the one for all steps, of ranks.
#include <meshpost/meshpost.hpp>

#include "block.hpp"

namespace pingpong {

/// Faces [begin, end) of a block, by a plain kernel.
struct Pack {
  Block block;
  u32 begin, end;
  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    u32 const points = block.face_points();
    for (u64 e = first; e < u64{end - begin} * points; e += stride)
      block.pack(begin + static_cast<u32>(e / points), static_cast<u32>(e % points));
  }
};

/// Points [begin, end) of the interior.
struct Interior {
  Block block;
  u32 begin, end;
  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 e = begin + first; e < end; e += stride) block.interior(static_cast<u32>(e));
  }
};

struct Unpack {
  Block block;
  u32 begin, end;
  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    u32 const points = block.face_points();
    for (u64 e = first; e < u64{end - begin} * points; e += stride) {
      u32 const face = begin + static_cast<u32>(e / points);
      if (block.has_neighbour(face)) block.unpack(face, static_cast<u32>(e % points));
    }
  }
};

/// Threads of a rank on a GPU; more have no lanes for short messages.
inline constexpr int halo_threads = 512;

/// All steps, by all ranks of all devices. The first `senders` ranks of a device each pack a share
/// of each face, send it to the rank of their number at the neighbour, and unpack what that one
/// sends. All ranks share the interior. Then the ranks of a device meet.
///
/// Why no memory is read while it is written. Field: step s reads field s % 2, and writes the
/// other. Ranks of the device wrote what it reads before they met. The others' values come through
/// the inbox, and the receiver itself unpacks them. Outbox: a rank packs only its own shares, after
/// flush(). Inbox: a neighbour can be one step ahead, but not two. It sends the face of step s + 2
/// after it has consumed mine of step s + 1. I send that one after I have unpacked its face of step
/// s. So there are two inboxes.
struct HaloSteps {
  static constexpr int max_threads = halo_threads;

  meshpost::Window<double> fields, boxes;
  Blocks blocks;
  Tasks tasks;
  u32 n, steps, senders;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    u32 const device = self.device(), mine = self.local_id();
    u64 const size = u64{n + 2} * (n + 2) * (n + 2), box = u64{faces} * n * n;
    auto const field = fields.local(self), all = boxes.local(self);
    for (u32 step = 0; step < steps; ++step) {
      u32 const now = step % 2;
      Block const block{field.data() + now * size,
                        field.data() + (1 - now) * size,
                        all.data() + 2 * box,
                        all.data() + now * box,
                        n,
                        blocks.inner_faces(device)};
      if (mine < senders)
        for (u32 x = 0; x < tasks.x; ++x) pack_and_send(self, block, now, x);
      auto const inside = part_of(block.interior_points(), mine, self.local_size());
      self.each(inside.end - inside.begin,
                [&](u64 e) { block.interior(static_cast<u32>(inside.begin + e)); });
      if (mine < senders)
        for (u32 z = 0; z < tasks.z; ++z) receive_and_unpack(self, block, z);
      self.barrier(self.device_communicator());
    }
  }

 private:
  MESHPOST_FN meshpost::RankId peer(meshpost::Rank const& self, u32 face) const {
    return {blocks.beyond(self.device(), face) * self.local_size() + self.local_id()};
  }

  MESHPOST_FN void pack_and_send(meshpost::Rank& self, Block const& block, u32 now, u32 x) const {
    auto const share = part_of(block.face_points(), self.local_id(), senders);
    u64 const count = share.end - share.begin, box = u64{faces} * n * n;
    auto const group = part_of(faces, x, tasks.x);
    self.flush(boxes);
    for (u64 face = group.begin; face < group.end; ++face)
      self.each(count, [&](u64 e) {
        block.pack(static_cast<u32>(face), static_cast<u32>(share.begin + e));
      });
    self.sync();
    for (u64 f = group.begin; f < group.end; ++f) {
      u32 const face = static_cast<u32>(f), there = opposite(face);
      if (!block.has_neighbour(face)) continue;
      auto const source =
          boxes.local(self).subspan(2 * box + u64{face} * n * n + share.begin, count);
      self.put_notify(boxes.at(peer(self, face), now * box + u64{there} * n * n + share.begin),
                      source, meshpost::Tag{there});
    }
  }
  MESHPOST_FN void receive_and_unpack(meshpost::Rank& self, Block const& block, u32 z) const {
    auto const share = part_of(block.face_points(), self.local_id(), senders);
    auto const group = part_of(faces, z, tasks.z);
    for (u64 f = group.begin; f < group.end; ++f) {
      u32 const face = static_cast<u32>(f);
      if (!block.has_neighbour(face)) continue;
      self.wait(boxes, meshpost::Tag{face}, 1, peer(self, face));
      self.each(share.end - share.begin,
                [&](u64 e) { block.unpack(face, static_cast<u32>(share.begin + e)); });
    }
  }
};

}  // namespace pingpong
