#include "exchange.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "common/enqueue.hpp"
#include "plain.hpp"

namespace pingpong {

using namespace meshpost;

namespace {

constexpr Tag message{0};

// Kernels add these to the first byte of a message: device 0 before it sends, device 1 before it
// sends back.
constexpr unsigned char added_by[] = {1, 2};

/// Mode kernel: ranks of equal number exchange shares of each message. `senders` ranks of a device
/// take part. If there are several, a message is there when all shares are: the ranks meet. Else
/// one pair of ranks could send while another one receives, and the link would carry both ways at
/// once.
struct RoundTrips {
  Window<unsigned char> box;
  Communicator side;
  u64 bytes, pitch, kernel_ns;
  u32 slots, rounds, senders;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const mine = self.local_id(), device = self.device();
    if (mine >= senders) return;
    RankId const peer{(1 - device) * self.local_size() + mine};
    u64 const begin = edge(mine), size = edge(mine + 1) - begin;
    auto const part = box.local(self);
    for (u32 round = 0; round < rounds; ++round) {
      u64 const inbox = round % slots * pitch;
      u64 const from = device == 0 ? (slots + round % slots) * pitch : inbox;
      if (device == 1) receive(self);
      if (kernel_ns != 0) compute(self, part.data() + from, device);
      self.put_notify(box.at(peer, inbox + begin), part.subspan(from + begin, size), message);
      if (device == 0) receive(self);
    }
  }

 private:
  MESHPOST_FN u64 edge(u32 sender) const {  // shares begin at multiples of 16
    return sender == senders ? bytes : bytes * sender / senders / 16 * 16;
  }
  MESHPOST_FN void receive(Rank& self) const {
    self.wait(box, message);
    if (senders > 1) self.barrier(side);
  }
  MESHPOST_FN void compute(Rank& self, unsigned char* first, u32 device) const {
    u64 const begin = self.now();
    while (self.now() - begin < kernel_ns) {
    }
    if (self.local_id() == 0 && self.thread() == 0)
      *first = static_cast<unsigned char>(*first + (device == 0 ? 1 : 2));
    self.sync();
  }
};

std::unique_ptr<World> make_world(WorldOptions options) {
  options.collectives = Bytes{1u << 20};  // only barriers are used
  auto world = std::make_unique<World>(options);
  if (world->processes() != 1)
    throw Error(Kind::bad_argument, "a ping-pong",
                "it was started in " + std::to_string(world->processes()) +
                    " processes; both devices belong to one process, whose threads act as hosts",
                "start one process");
  if (world->device_count() != 2)
    throw Error(Kind::bad_argument, "a ping-pong",
                "it takes two devices, and there are " + std::to_string(world->device_count()),
                "name two, such as --devices cuda:0,1, cuda:0*2 (parts of one GPU) or cpu:2");
  return world;
}

}  // namespace

u32 senders_of(Bytes size, u32 ranks_per_device) {
  constexpr u64 share = u64{32} << 10;  // of a rank; a barrier costs about as much as its copy
  return static_cast<u32>(
      std::bit_floor(std::min<u64>(std::max<u64>(1, size.value / share), ranks_per_device)));
}

Exchange::Exchange(WorldOptions const& options, Bytes largest) : world_(make_world(options)) {
  devices_ = world_->devices();
  u64 const count = Places(largest.value).all();
  u32 const each = world_->ranks_per_device();
  // Every rank of a device has all its memory as its part, so hosts, streams and ranks use it.
  in_devices_ =
      world_->window<Byte>(std::vector<Extent>(world_->size(), {0, count}), Tags{1}, "in devices");
  std::vector<std::span<Byte>> parts;
  for (auto const& device : devices_) {
    pinned_.push_back(device->allocate(Bytes{count}, MemoryKind::pinned));
    for (u32 rank = 0; rank < each; ++rank) parts.emplace_back(pinned_.back().as<Byte>(), count);
  }
  in_host_ = world_->register_memory(parts, Tags{1}, "in pinned memory");
  for (u32 ranks = 1; ranks <= each; ranks *= 2)
    sides_.push_back(world_->split(world_->communicator(), [&](RankId rank) {
      return rank % each < ranks ? static_cast<i64>(rank / each) : i64{-1};
    }));
  for (u32 device = 0; device < 2; ++device) ends_.emplace_back(*world_, device);
  use_devices_for_copies(physical_devices(devices_));
  warm_up();
}

Exchange::~Exchange() = default;

// A GPU loads a kernel when it is first launched, and may wait for all its work. That is a deadlock
// if some of that work waits for the kernel.
void Exchange::warm_up() {
  for (u32 device = 0; device < 2; ++device) {
    auto* const anywhere = in_devices_.part(rank_of(device)).data();
    apps::enqueue(*devices_[device], ends_[device].stream(), 1, Spin{0, anywhere, 0});
    ends_[device].synchronize();
  }
}

Window<Exchange::Byte> const& Exchange::window(MemoryKind memory) const {
  return memory == MemoryKind::device ? in_devices_ : in_host_;
}

// As a program of CUDA and MPI is written, with a thread for each process of it.
void Exchange::play_host(Task const& task, u32 device) {
  Places const at(task.bytes);
  auto* const mine = window(task.memory).part(rank_of(device)).data();
  auto* const others = window(task.memory).part(rank_of(1 - device)).data();
  auto& stream = ends_[device].stream();
  for (u32 round = 0; round < task.rounds; ++round) {
    auto* const source = mine + (device == 0 ? at.source(round) : at.inbox(round));
    if (device == 1) hosts_.await(arrived_[1], round + 1);
    if (task.kernel_ns != 0) {
      apps::enqueue(*devices_[device], stream, 1, Spin{task.kernel_ns, source, added_by[device]});
      stream.synchronize();
    }
    copy(others + at.inbox(round), source, Bytes{task.bytes});
    arrived_[1 - device].raise(round + 1);
    if (device == 0) hosts_.await(arrived_[0], round + 1);
  }
}

void Exchange::play_stream(Task const& task, u32 device) {
  Places const at(task.bytes);
  auto const& box = window(task.memory);
  auto const mine = box.part(rank_of(device));
  auto& end = ends_[device];
  Throttle throttle(end.stream());
  for (u32 round = 0; round < task.rounds; ++round) {
    u64 const source = device == 0 ? at.source(round) : at.inbox(round);
    if (device == 1) end.wait(box, message);
    if (task.kernel_ns != 0)
      apps::enqueue(*devices_[device], end.stream(), 1,
                    Spin{task.kernel_ns, mine.data() + source, added_by[device]});
    end.put_notify(box.at(rank_of(1 - device), at.inbox(round)), mine.subspan(source, task.bytes),
                   ends_[1 - device].id(), message);
    if (device == 0) end.wait(box, message);
    throttle.count(3);
  }
  hosts_.all_queued(device);
  finish(end);
}

Took Exchange::run_kernel(Task const& task) {
  u32 const senders = senders_of(Bytes{task.bytes}, world_->ranks_per_device());
  RoundTrips const kernel{window(task.memory), sides_[static_cast<u32>(std::countr_zero(senders))],
                          task.bytes,          Places(task.bytes).pitch,
                          task.kernel_ns,      slots,
                          task.rounds,         senders};
  double const cpu = cpu_seconds();
  auto const begin = std::chrono::steady_clock::now();
  world_->run(kernel);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
  return {took.count(), cpu_seconds() - cpu, 0};
}

Took Exchange::run(Task const& task) {
  if (task.mode == Mode::kernel) return run_kernel(task);
  for (auto& flag : arrived_) flag.raise(0);
  return hosts_.run([&](u32 device) {
    task.mode == Mode::host ? play_host(task, device) : play_stream(task, device);
  });
}

std::string Exchange::check(Task const& task, u64 seed) {
  Places const at(task.bytes);
  auto const& box = window(task.memory);
  std::mt19937_64 random(seed);
  std::vector<Byte> before[2], expected[2];
  for (u32 device = 0; device < 2; ++device) {
    before[device].resize(at.all());  // a multiple of 8
    for (u64 i = 0; i < at.all(); i += sizeof(u64)) {
      u64 const word = random();
      std::memcpy(before[device].data() + i, &word, sizeof word);
    }
    box.write(rank_of(device), 0, std::span<Byte const>(before[device]));
    expected[device] = before[device];
  }
  for (u32 round = 0; round < slots; ++round) {
    auto const source = expected[0].begin() + static_cast<i64>(at.source(round));
    if (task.kernel_ns != 0) *source = static_cast<Byte>(*source + added_by[0]);
    auto const there = expected[1].begin() + static_cast<i64>(at.inbox(round));
    std::copy_n(source, task.bytes, there);
    if (task.kernel_ns != 0) *there = static_cast<Byte>(*there + added_by[1]);
    std::copy_n(there, task.bytes, expected[0].begin() + static_cast<i64>(at.inbox(round)));
  }
  auto short_task = task;
  short_task.rounds = slots;
  run(short_task);
  std::vector<Byte> found(at.all());
  for (u32 device = 0; device < 2; ++device) {
    box.read(rank_of(device), 0, std::span(found));
    auto const wrong = std::ranges::mismatch(found, expected[device]).in1 - found.begin();
    if (wrong == static_cast<i64>(found.size())) continue;
    u64 const slot = static_cast<u64>(wrong) / at.pitch, byte = static_cast<u64>(wrong) % at.pitch;
    return std::string("byte ") + std::to_string(byte) +
           (byte < task.bytes ? "" : " (behind the message)") + " of " +
           (slot < slots ? "inbox " : "source ") + std::to_string(slot % slots) + " of device " +
           std::to_string(device) + " is wrong" +
           (found[static_cast<u64>(wrong)] == before[device][static_cast<u64>(wrong)]
                ? ": it did not change"
                : "");
  }
  return "";
}

}  // namespace pingpong
