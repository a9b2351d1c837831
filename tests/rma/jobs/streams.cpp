// Streams of several processes as endpoints.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <thread>

#include "support/job.hpp"
#include "support/worlds.hpp"

namespace meshpost::job_streams {
namespace {

using test::print_error;
using test::require;
using test::Role;
using test::say;
using testing::AllOf;
using testing::HasSubstr;

struct Buffer {
  Buffer(Device& owner, std::vector<u32> const& values)
      : memory(owner.allocate(Bytes{values.size() * sizeof(u32)}, MemoryKind::device)),
        count(values.size()) {
    owner.write(memory.data(), values.data(), Bytes{count * sizeof(u32)});
  }
  std::span<u32 const> span() const { return {memory.as<u32>(), count}; }
  Allocation memory;
  u64 count;
};

std::vector<u32> numbers(u64 count, u64 seed) {
  std::vector<u32> values(count);
  for (u64 i = 0; i < count; ++i) values[i] = static_cast<u32>(test::mixed(seed, i));
  return values;
}

StreamId first_stream(u32 device) { return {device, 0}; }

struct Consume {
  Window<u32> box;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(box, Tag{3}); }
};
struct NotifyStreams {
  Window<u32> box;
  u32 each;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const next = (self.id() + 1) % self.size();
    auto const mine = box.local(self);
    if (self.thread() == 0) mine[0] = 1000 + self.id();
    self.sync();
    self.put(box.at(RankId{next}, 1), mine.subspan(0, 1));
    self.notify(box, {next / each, 0}, Tag{4});
  }
};

Role const ring("streams_of_processes", [] {
  auto options = test::world_options();
  options.ranks = 1;
  World world(options);
  u32 const devices = world.device_count(), first = world.first_rank();
  constexpr u64 count = 1'000'000;
  auto const box = world.window<u32>(count, Tags{5}, "box");
  std::vector<StreamEndpoint> ends;
  for (u32 own = 0; own < world.devices().size(); ++own) ends.emplace_back(world, own);
  // To the next device, and back to it from there.
  for (u64 const size : {1ull, 1000ull, static_cast<unsigned long long>(count)}) {
    std::vector<Buffer> sources;
    for (u32 own = 0; own < ends.size(); ++own) {
      u32 const device = first + own, next = (device + 1) % devices;
      auto const& from = sources.emplace_back(*world.devices()[own], numbers(size, device + size));
      ends[own].put_notify(box.at(RankId{next}), from.span(), first_stream(next), Tag{0});
      ends[own].wait(box, Tag{0});
      ends[own].notify(box, first_stream((device + devices - 1) % devices), Tag{1});
      ends[own].wait(box, Tag{1});
    }
    for (auto& end : ends) end.synchronize();
    for (u32 own = 0; own < ends.size(); ++own) {
      auto const got = box.read(RankId{first + own});
      auto const expected = numbers(size, (first + own + devices - 1) % devices + size);
      require(std::equal(expected.begin(), expected.end(), got.begin()), "what the other put");
    }
    // Nobody sends the next size before all have read.
    for (u32 own = 0; own < ends.size(); ++own)
      for (u32 device = 0; device < devices; ++device)
        ends[own].notify(box, first_stream(device), Tag{2});
    for (auto& end : ends) end.wait(box, Tag{2}, devices);
    for (auto& end : ends) end.synchronize();
  }
  // Messages of several chunks go round all devices, and back. The message window holds two chunks.
  MessageWindow const mail(world, {.tags = 2, .slots = 2, .slot_bytes = 1024, .name = "mail"});
  constexpr u64 length = 1000;
  std::vector<Buffer> sources_of_messages, come_messages;
  for (u32 own = 0; own < ends.size(); ++own) {
    sources_of_messages.emplace_back(*world.devices()[own], numbers(length, first + own));
    come_messages.emplace_back(*world.devices()[own], std::vector<u32>(2 * length, 7));
  }
  for (u32 round = 0; round < 3; ++round)
    for (u32 own = 0; own < ends.size(); ++own) {
      u32 const device = first + own, next = (device + 1) % devices,
                previous = (device + devices - 1) % devices;
      auto const mine = sources_of_messages[own].span();
      std::span<u32> const come(come_messages[own].memory.as<u32>(), 2 * length);
      // If all sent first, all would wait for room.
      bool const sends_first = device % 2 == 0;
      if (sends_first) ends[own].send(mail, first_stream(next), mine, Tag{0});
      ends[own].receive(mail, first_stream(previous), come.first(length), Tag{0});
      if (!sends_first) ends[own].send(mail, first_stream(next), mine, Tag{0});
    }
  for (auto& end : ends) end.synchronize();
  for (u32 own = 0; own < ends.size(); ++own) {
    std::vector<u32> got(length);
    world.devices()[own]->read(got.data(), come_messages[own].memory.data(),
                               Bytes{length * sizeof(u32)});
    require(got == numbers(length, (first + own + devices - 1) % devices), "what the other sent");
  }
  world.free(mail.window());
  // Hosts, streams and ranks of other processes.
  u32 const next_process = (world.process() + 1) % world.processes();
  ends[0].notify(box, world.host(next_process), Tag{4});
  box.wait(Tag{4});
  box.notify(first_stream((first + static_cast<u32>(ends.size())) % devices), Tag{1});
  ends[0].wait(box, Tag{1});
  ends[0].synchronize();
  Launch behind;
  for (auto& end : ends) behind.streams.push_back(&end.stream());
  for (u32 i = 0; i < 3; ++i) {
    for (u32 own = 0; own < ends.size(); ++own)
      ends[own].notify(box, RankId{(first + own + 1) % devices}, Tag{3});
    for (auto& end : ends) end.synchronize();  // has come: all processes then begin the run
    require(world.run(Consume{box}, behind).unconsumed.empty(), "all was consumed");
  }
  world.run(NotifyStreams{box, 1});
  for (auto& end : ends) end.wait(box, Tag{4});
  for (auto& end : ends) end.synchronize();
  for (u32 own = 0; own < ends.size(); ++own)
    require(box.read(RankId{first + own})[1] == 1000 + (first + own + devices - 1) % devices,
            "what a rank has put for this stream's device");
});

TEST(Job, streams_of_all_processes_notify_each_other_and_ranks_and_hosts) {
  test::Job job("streams_of_processes", 3);
  test::expect_well(job.wait());
}

Role const waiting("streams_that_wait", [] {
  auto options = test::world_options();
  options.ranks = 1;
  World world(options);
  auto const box = world.window<u32>(1, Tags{2}, "box");
  StreamEndpoint end(world, 0, "mine");
  end.wait(box, Tag{1});
  end.notify(box, world.host(), Tag{0});  // is never done
  say("waits");
  print_error([&] { end.synchronize(); });
  print_error([&] { box.wait(Tag{0}, 1, std::chrono::milliseconds(10)); });
});

Role const receiving("streams_that_receive", [] {
  auto options = test::world_options();
  options.ranks = 1;
  World world(options);
  MessageWindow const mail(world, {.tags = 4, .slots = 2, .name = "mail"});
  StreamEndpoint end(world, 0, "mine");
  Buffer const buffer(*world.devices()[0], {1, 2});
  u32 const other = (world.first_rank() + 1) % world.device_count();
  end.receive(mail, first_stream(other), std::span(buffer.memory.as<u32>(), 2), Tag{3});
  say("waits");
  print_error([&] { end.synchronize(); });
});

TEST(JobLoss, ends_streams_that_receive_a_message) {
  test::Job job("streams_that_receive", 2);
  for (u32 process = 0; process < 2; ++process) job.wait_for(process, "waits");
  job.kill(1);
  auto const& all = job.wait();
  EXPECT_THAT(all[0].out,
              AllOf(HasSubstr("receive, stream 'mine' of"), HasSubstr("window 'mail'"),
                    HasSubstr("no message with tag 3 had come from stream 0 of device 1"),
                    HasSubstr("process 1"), HasSubstr("[peer lost]")));
  EXPECT_LT(all[0].seconds, 10);
}

TEST(JobLoss, ends_the_waits_of_streams) {
  test::Job job("streams_that_wait", 3);
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "waits");
  job.kill(2);
  auto const& all = job.wait();
  for (u32 process = 0; process < 2; ++process)
    EXPECT_THAT(all[process].out,
                AllOf(HasSubstr("wait, stream 'mine' of"), HasSubstr("window 'box'"),
                      HasSubstr("0 of 1 notifications of tag 1 had come: "), HasSubstr("process 2"),
                      HasSubstr("[peer lost]")));
  EXPECT_LT(all[0].seconds, 10);
}

}  // namespace
}  // namespace meshpost::job_streams
