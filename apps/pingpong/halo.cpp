#include "halo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/enqueue.hpp"
#include "halo_kernels.hpp"
#include "plain.hpp"

namespace pingpong {

using namespace meshpost;

Halo::Halo(std::shared_ptr<World> world, Blocks blocks, u32 n)
    : world_(std::move(world)),
      blocks_(blocks),
      n_(n),
      arrived_(world_->device_count()),
      hosts_(world_->device_count()) {
  if (world_->processes() != 1)
    throw Error(Kind::bad_argument, "a halo exchange",
                "it was started in " + std::to_string(world_->processes()) +
                    " processes; all devices belong to one process, whose threads act as hosts",
                "start one process");
  u32 const devices = world_->device_count();
  if (devices < 2)
    throw Error(Kind::bad_argument, "a halo exchange", "there is one device, without a neighbour",
                "name at least two, such as --devices cuda, cuda:0*2 (parts of one GPU) or cpu:2");
  if (blocks_.count() != devices)
    throw Error(Kind::bad_argument, "--blocks " + blocks_.text(),
                "these are " + std::to_string(blocks_.count()) + " blocks for " +
                    std::to_string(devices) + " devices",
                "give each device one block, or leave the option out");
  // Every rank of a device has all its memory as its part, so hosts, streams and ranks use it.
  u64 const boxes = 3 * faces * u64{n_} * n_;
  fields_ = world_->window<double>(std::vector<Extent>(world_->size(), {0, 2 * field_size()}),
                                   Tags{1}, "fields");
  boxes_ = world_->window<double>(std::vector<Extent>(world_->size(), {0, boxes}), Tags{faces},
                                  "inboxes and outbox");
  for (u32 device = 0; device < devices; ++device) {
    field_.push_back(fields_.part(rank_of(device)).data());
    box_.push_back(boxes_.part(rank_of(device)).data());
    ends_.emplace_back(*world_, device);
  }
  warm_up();
}

Halo::~Halo() {
  ends_.clear();  // waits for their work
  world_->free(fields_);
  world_->free(boxes_);
}

Block Halo::block(u32 device, u32 step) const {
  u64 const now = step % 2, box = u64{faces} * n_ * n_;
  auto *const field = field_[device], *const boxes = box_[device];
  return {field + now * field_size(),
          field + (1 - now) * field_size(),
          boxes + 2 * box,
          boxes + now * box,
          n_,
          blocks_.inner_faces(device)};
}

template <class Work>
void Halo::enqueue_on(u32 device, u64 items, Work const& work) {
  apps::enqueue(*world_->devices()[device], ends_[device].stream(), items, work);
}
void Halo::enqueue_pack(u32 device, u32 step, Range of) {
  enqueue_on(device, (of.end - of.begin) * n_ * n_,
             Pack{block(device, step), static_cast<u32>(of.begin), static_cast<u32>(of.end)});
}
void Halo::enqueue_interior(u32 device, u32 step, Range of) {
  enqueue_on(device, of.end - of.begin,
             Interior{block(device, step), static_cast<u32>(of.begin), static_cast<u32>(of.end)});
}
void Halo::enqueue_unpack(u32 device, u32 step, Range of) {
  enqueue_on(device, (of.end - of.begin) * n_ * n_,
             Unpack{block(device, step), static_cast<u32>(of.begin), static_cast<u32>(of.end)});
}

// A GPU loads a kernel when it is first launched, and may wait for all its work. That is a deadlock
// if some of that work waits for the kernel.
void Halo::warm_up() {
  for (u32 device = 0; device < world_->device_count(); ++device) {
    enqueue_pack(device, 0, {0, 0});
    enqueue_interior(device, 0, {0, 0});
    enqueue_unpack(device, 0, {0, 0});
    ends_[device].synchronize();
  }
}

void Halo::play_host(Loop const& loop, u32 device) {
  auto& stream = ends_[device].stream();
  u64 const points = u64{n_} * n_;
  for (u32 step = 0; step < loop.steps; ++step) {
    Block const mine = block(device, step);
    for (u32 x = 0; x < loop.tasks.x; ++x) {
      auto const group = part_of(faces, x, loop.tasks.x);
      enqueue_pack(device, step, group);
      stream.synchronize();
      for (u32 face = static_cast<u32>(group.begin); face < group.end; ++face) {
        auto const there = blocks_.neighbour(device, face);
        if (!there) continue;
        u64 const inbox = (step % 2 * u64{faces} + opposite(face)) * points;
        copy(box_[*there] + inbox, mine.outbox + face * points, Bytes{points * sizeof(double)});
        arrived_[*there].of[opposite(face)].raise(step + 1);
      }
    }
    for (u32 y = 0; y < loop.tasks.y; ++y) {
      enqueue_interior(device, step, part_of(mine.interior_points(), y, loop.tasks.y));
      stream.synchronize();
    }
    for (u32 z = 0; z < loop.tasks.z; ++z) {
      auto const group = part_of(faces, z, loop.tasks.z);
      for (u32 face = static_cast<u32>(group.begin); face < group.end; ++face)
        if (mine.has_neighbour(face)) hosts_.await(arrived_[device].of[face], step + 1);
      enqueue_unpack(device, step, group);
      stream.synchronize();
    }
  }
}

void Halo::play_stream(Loop const& loop, u32 device) {
  auto& end = ends_[device];
  u64 const points = u64{n_} * n_;
  Throttle throttle(end.stream());
  for (u32 step = 0; step < loop.steps; ++step) {
    Block const mine = block(device, step);
    for (u32 x = 0; x < loop.tasks.x; ++x) {
      auto const group = part_of(faces, x, loop.tasks.x);
      enqueue_pack(device, step, group);
      for (u32 face = static_cast<u32>(group.begin); face < group.end; ++face) {
        auto const there = blocks_.neighbour(device, face);
        if (!there) continue;
        u64 const inbox = (step % 2 * u64{faces} + opposite(face)) * points;
        end.put_notify(boxes_.at(rank_of(*there), inbox),
                       std::span<double const>(mine.outbox + face * points, points),
                       ends_[*there].id(), Tag{opposite(face)});
      }
    }
    for (u32 y = 0; y < loop.tasks.y; ++y)
      enqueue_interior(device, step, part_of(mine.interior_points(), y, loop.tasks.y));
    for (u32 z = 0; z < loop.tasks.z; ++z) {
      auto const group = part_of(faces, z, loop.tasks.z);
      std::vector<Counts> awaited;
      for (u32 face = static_cast<u32>(group.begin); face < group.end; ++face)
        if (mine.has_neighbour(face)) awaited.push_back({Tag{face}});
      if (!awaited.empty()) end.wait(boxes_, awaited);
      enqueue_unpack(device, step, group);
    }
    throttle.count(faces + loop.tasks.x + loop.tasks.y + 2 * loop.tasks.z);
  }
  hosts_.all_queued(device);
  finish(end);
}

Took Halo::run_kernel(Loop const& loop) {
  constexpr u32 share = 256;  // points of a face, for each rank that sends
  HaloSteps const kernel{fields_,
                         boxes_,
                         blocks_,
                         loop.tasks,
                         n_,
                         loop.steps,
                         std::clamp(n_ * n_ / share, 1u, world_->ranks_per_device())};
  bool const gpu = world_->devices().front()->kind() == "cuda";
  Launch const launch{.threads = {gpu ? static_cast<u32>(halo_threads) : 0u, 1, 1}};
  double const cpu = cpu_seconds();
  auto const begin = std::chrono::steady_clock::now();
  world_->run(kernel, launch);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
  return {took.count(), cpu_seconds() - cpu, 0};
}

Took Halo::run(Loop const& loop) {
  if (loop.mode == Mode::kernel) return run_kernel(loop);
  for (auto& device : arrived_)
    for (auto& flag : device.of) flag.raise(0);
  return hosts_.run([&](u32 device) {
    loop.mode == Mode::host ? play_host(loop, device) : play_stream(loop, device);
  });
}

// -- fields on the host

u64 Halo::global(u32 device, u32 i, u32 j, u32 k) const {
  u64 const x = blocks_.place(device, 0) * u64{n_} + i - 1;
  u64 const y = blocks_.place(device, 1) * u64{n_} + j - 1;
  u64 const z = blocks_.place(device, 2) * u64{n_} + k - 1;
  return (z * blocks_.y * n_ + y) * blocks_.x * n_ + x;
}

void Halo::write(std::vector<double> const& field) {
  constexpr double poison = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> const boxes(3 * faces * u64{n_} * n_, poison);
  for (u32 device = 0; device < world_->device_count(); ++device) {
    std::vector<double> both(2 * field_size(), poison);
    Block const mine = block(device, 0);
    auto const outside = [&](u32 at, u32 face) { return at == (face % 2 == 0 ? 0 : n_ + 1); };
    for (u32 k = 0; k < n_ + 2; ++k)
      for (u32 j = 0; j < n_ + 2; ++j)
        for (u32 i = 0; i < n_ + 2; ++i) {
          u32 const at[] = {i, j, k};
          u32 count = 0, face = 0;  // behind how many faces; the last one
          for (u32 f = 0; f < faces; ++f)
            if (outside(at[f / 2], f)) ++count, face = f;
          u64 const p = mine.at(i, j, k);
          if (count == 1 && !mine.has_neighbour(face)) both[p] = both[field_size() + p] = 0;
          else if (count < 2) both[p] = field[global(device, i, j, k)];
        }
    fields_.write(rank_of(device), 0, std::span<double const>(both));
    boxes_.write(rank_of(device), 0, std::span<double const>(boxes));
  }
}

std::vector<double> Halo::read(u32 steps) const {
  std::vector<double> field(points()), part(field_size());
  for (u32 device = 0; device < world_->device_count(); ++device) {
    fields_.read(rank_of(device), steps % 2 * field_size(), std::span(part));
    Block const mine = block(device, 0);
    for (u32 k = 1; k <= n_; ++k)
      for (u32 j = 1; j <= n_; ++j)
        for (u32 i = 1; i <= n_; ++i) field[global(device, i, j, k)] = part[mine.at(i, j, k)];
  }
  return field;
}

std::vector<double> halo_reference(Blocks blocks, u32 n, std::vector<double> field, u32 steps) {
  u64 const x = u64{blocks.x} * n, y = u64{blocks.y} * n, z = u64{blocks.z} * n;
  auto next = field;
  for (u32 step = 0; step < steps; ++step) {
    auto const at = [&](u64 i, u64 j, u64 k) {  // numbers wrap below 0
      return i < x && j < y && k < z ? field[(k * y + j) * x + i] : 0.0;
    };
    for (u64 k = 0; k < z; ++k)
      for (u64 j = 0; j < y; ++j)
        for (u64 i = 0; i < x; ++i) {
          double const u = at(i, j, k);
          double const around =
              ((at(i - 1, j, k) + at(i + 1, j, k)) + (at(i, j - 1, k) + at(i, j + 1, k))) +
              (at(i, j, k - 1) + at(i, j, k + 1));
          next[(k * y + j) * x + i] = u + coefficient * (around - 6.0 * u);
        }
    field.swap(next);
  }
  return field;
}

}  // namespace pingpong
