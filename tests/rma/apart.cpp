// Devices of one process that reach each other only by the host's proxy: because of a setting, or
// because they are of two kinds.
#include <atomic>

#include "base/host_hooks.hpp"
#include "support/errors.hpp"
#include "support/everything.hpp"
#include "support/users.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

WorldOptions apart(u32 ranks, std::string const& devices = test::devices()) {
  auto options = test::options(ranks, devices);
  options.apart = true;
  return options;
}

// Logical devices replace GPUs that a host may not have.
std::vector<std::string> all_devices() {
  if (test::on_gpus()) return {test::devices(), "cuda:0*2", "cuda:0*3"};
  return {"cpu:2", "cpu:3", "cpu:1*4"};
}

TEST(Apart, devices_have_every_operation) {
  for (auto const& devices : all_devices()) {
    SCOPED_TRACE(devices);
    World world(apart(3, devices));
    test::try_everything(world);
    EXPECT_EQ(test::wrong_blocks(world, 3), 0u);
  }
}

struct WaitForNext {  // after one message each, so that something was in flight
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + self.size() / 2) % self.size()};
    self.notify(window, next, Tag{3});
    self.wait(window, Tag{3});
    self.wait(window, Tag{3}, 1, next);
  }
};

TEST(Apart, ranks_that_all_wait_are_found_deadlocked_and_named) {
  World world(apart(1, all_devices()[1]));
  auto const window = world.window<u32>(1, Tags{4}, "inbox");
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(says(error_of([&] { world.run(WaitForNext{window}); }), Kind::deadlock,
                     {"every rank that has not ended waits", "rank 0", "'inbox'", "tag 3"}));
  test::try_everything(world);
}

// Rank 0 makes more requests than a ring holds. Rank 1 beside it fails when the ring is full and
// the proxy's thread is serving it. The worker of these ranks helps the proxy when both ranks wait.
struct FillsItsRing {
  Window<u32> window;
  u32 const* attended;  // in the host's memory; null on GPUs, whose ranks don't help the proxy
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const far{self.size() - 1};
    if (self.id() == 0)
      for (u32 i = 0; i < 4 * RequestRing::capacity; ++i) self.notify(window, far, Tag{0});
    if (self.id() != 1) return;
    auto const head = self.scratch<u32>(1);  // all threads see the same value
    for (bool full = false; !full;) {
      self.test(window, Tag{1});
      if (self.thread() == 0) head[0] = memory::load_acquire(self.state().requests.head);
      self.sync();
      full = head[0] > RequestRing::capacity && (!attended || memory::load_acquire(attended) > 0);
      self.sync();
    }
    self.fail("the ring is full");
  }
};

TEST(Apart, ranks_leave_whose_ring_is_full_and_not_emptied) {
  auto options = apart(2, all_devices()[1]);  // of the kind that has several devices on every host
  options.workers = 1;  // the worker is busy: only the proxy's thread empties rings
  World world(options);
  auto const window = world.window<u32>(1, Tags{2}, "inbox");
  std::atomic<bool> over{false};
  u32 attended = 0;
  hooks::install_host_hook([&](std::string_view place) {
    if (place == "empty a ring") std::atomic_ref(attended).store(1), over.wait(false);
    if (place == "abandon a run") over = true, over.notify_all();
  });
  FillsItsRing const kernel{window, test::on_gpus() ? nullptr : &attended};
  auto const error = error_of([&] { world.run(kernel, {.scratch = Bytes{sizeof(u32)}}); });
  hooks::install_host_hook(nullptr);
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"rank 1", "the ring is full"}));
  test::try_everything(world);
}

TEST(Apart, devices_reach_memory_of_the_user) {
  for (auto const& devices : all_devices()) {
    SCOPED_TRACE(devices);
    World world(apart(3, devices));
    test::UserMemory memory(world);
    test::try_everything(world, memory);
    EXPECT_EQ(test::wrong_blocks(world, 3, memory), 0u);
  }
}

// Puts out of scratch memory, and gets into it. On a GPU the host can't reach scratch memory.
struct ByScratch {
  Window<u32> window;  // received words; then words that are sent again
  u32 size;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id(), half = n / 2;
    RankId const other{(me + half) % n};  // of another device
    auto const mine = window.local(self);
    auto const scratch = self.scratch<u32>(size);
    for (u32 round = 0; round < 3; ++round) {
      self.each(size, [&](u64 i) { scratch[i] = static_cast<u32>(test::mixed(me, round, i)); });
      self.put_notify(window.at(other, 1), scratch.subspan(1, size - 1), Tag{0});
      self.put(window.at(other), scratch.subspan(0, 1));
      // A face of 3 planes out of 5, in runs of 40 words.
      u64 const run = 40;
      StridedLayout const planes{{run, 3, 1}, {1, 2 * run, 0}, 0};
      self.put(window.at(other, size), scratch.strided(planes));
      self.notify(window, other, Tag{0});
      self.flush(window);
      self.each(size, [&](u64 i) { scratch[i] = 0; });
      self.wait(window, Tag{0}, 2);
      self.each(size, [&](u64 i) {
        findings.add(self, mine[i] != static_cast<u32>(test::mixed(other, round, i)));
      });
      self.each(3 * run, [&](u64 i) {
        u64 const from = i / run * 2 * run + i % run;
        findings.add(self, mine[size + i] != static_cast<u32>(test::mixed(other, round, from)));
      });
      self.barrier();
      self.get(scratch, window.at(other).subspan(0, size));
      self.each(size, [&](u64 i) {
        findings.add(self, scratch[i] != static_cast<u32>(test::mixed(me, round, i)));
      });
      self.barrier();
    }
  }
};

TEST(Apart, devices_put_out_of_scratch_memory_and_get_into_it) {
  World world(apart(2));
  auto const findings = test::make_findings(world);
  for (u32 const size : {200u, 4098u, 4128u, 9000u}) {  // short last pieces of 16 KiB, too
    auto const window = world.window<u32>(size + 120, Tags{1});
    for (Dim3 const threads : {Dim3{0, 1, 1}, Dim3{32, 1, 1}})
      world.run(ByScratch{window, size, findings},
                {.threads = threads, .scratch = Bytes{u64{size} * sizeof(u32)}});
  }
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST(ApartCpuOnly, devices_refuse_to_check_delivery) {
  auto options = apart(1, "cpu:2");
  options.check_delivery = true;
  EXPECT_TRUE(says(error_of([&] { World const world(options); }), Kind::bad_argument,
                   {"delivery", "MESHPOST_REACH"}));
  options.devices = "cpu:1";  // of ranks that reach each other
  World const world(options);
}

TEST(GpusAndCpuDevices, of_one_process_have_every_operation) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs a GPU";
  for (auto const* const devices : {"cuda:0,cpu:1", "cpu:2,cuda:0*2"}) {
    SCOPED_TRACE(devices);
    World world(test::options(2, devices));
    test::try_everything(world);
    EXPECT_EQ(test::wrong_blocks(world, 3), 0u);
    auto const window = world.window<u32>(1, Tags{4}, "inbox");
    EXPECT_TRUE(says(error_of([&] { world.run(WaitForNext{window}); }), Kind::deadlock,
                     {"every rank that has not ended waits", "'inbox'", "cycle: rank 0 -> rank"}));
    test::try_everything(world);
  }
}

}  // namespace
}  // namespace meshpost
