// Ranks that begin LibMP's requests and wait for them.
#include "peers.hpp"
#include "runs.hpp"

#include <meshpost/compat/mp/device.cuh>
#include <meshpost/meshpost.hpp>

#include <cstdlib>
#include <utility>
#include <vector>

#include "support/job.hpp"

namespace meshpost {
namespace {

using test::Peers;
using test::require;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

constexpr u32 rank_steps = 20, rank_numbers = 5000, ranks = 3;

/// Of one rank and step.
struct RankStep {
  ::mp::mlx5::send_desc_t send;
  ::mp::mlx5::wait_desc_t sent, received;
};

MESHPOST_FN int number(int process, u32 rank, u32 step, u64 i) {
  return 10'000'000 * process + 1'000'000 * static_cast<int>(rank) +
         10'000 * static_cast<int>(step) + static_cast<int>(i);
}

/// All threads pack; the message must hold what each of them has stored.
struct Exchange {
  RankStep const* all;  ///< [step][rank]
  int own, previous;
  int* out;       ///< [rank][number]
  int const* in;  ///< [step][rank][number]
  int* wrong;     ///< [rank]

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const rank = self.id().value, threads = self.threads();
    int bad = 0;
    for (u32 step = 0; step < rank_steps; ++step) {
      auto const& one = all[step * ranks + rank];
      for (u32 i = self.thread(); i < rank_numbers; i += threads)
        out[rank * rank_numbers + i] = number(own, rank, step, i);
      ::mp::device::mlx5::send(self, one.send);
      ::mp::device::mlx5::wait(self, one.received);
      ::mp::device::mlx5::signal(self, one.received);
      auto const* const mine = in + (step * ranks + rank) * rank_numbers;
      for (u32 i = self.thread(); i < rank_numbers; i += threads)
        if (mine[i] != number(previous, rank, step, i)) ++bad;
      ::mp::device::mlx5::wait(self, one.sent);
    }
    if (bad != 0) wrong[rank] = bad;  // any thread's
  }
};

/// The device of this process, and memory of it that LibMP knows.
WorldOptions own_device(u32 of_ranks) {
  WorldOptions options;
  auto const* const devices = std::getenv("MESHPOST_TEST_DEVICES");
  options.devices = devices ? devices : "cpu:1";
  options.ranks = of_ranks;
  options.alone = true;
  return options;
}

template <class T>
struct OfDevice {
  explicit OfDevice(std::size_t count) {
    require(cudaMalloc(&memory, count * sizeof(T)) == cudaSuccess, "memory");
    MESHPOST_MP(mp_register(memory, count * sizeof(T), &reg));
  }
  ~OfDevice() {
    mp_deregister(&reg);
    cudaFree(memory);
  }
  OfDevice(OfDevice const&) = delete;
  OfDevice& operator=(OfDevice const&) = delete;
  T* data() const { return static_cast<T*>(memory); }

  void* memory = nullptr;
  mp_reg_t reg = nullptr;
};

/// Memory that the host and the device use.
template <class T>
struct Pinned {
  Pinned(World const& world, std::size_t count)
      : allocation(world.devices().front()->allocate(Bytes{count * sizeof(T)}, MemoryKind::pinned)),
        data(allocation.as<T>()) {
    for (std::size_t i = 0; i < count; ++i) new (data + i) T{};
  }
  Allocation allocation;
  T* data;
};

Role const by_ranks("mp_ranks", [] {
  Peers const peers;
  World world(own_device(ranks));
  OfDevice<int> out(ranks * rank_numbers), in(rank_steps * ranks * rank_numbers);
  Pinned<RankStep> const all(world, rank_steps * ranks);
  Pinned<int> const wrong(world, ranks);
  constexpr int bytes = rank_numbers * sizeof(int);
  std::vector<mp_request_t> sends(rank_steps * ranks), receives(sends.size());
  for (std::size_t at = 0; at < sends.size(); ++at) {
    auto& one = all.data[at];
    MESHPOST_MP(
        mp_irecv(in.data() + at * rank_numbers, bytes, peers.previous(), &in.reg, &receives[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.received, &receives[at]));
    MESHPOST_MP(mp_send_prepare(out.data() + at % ranks * rank_numbers, bytes, peers.next(),
                                &out.reg, &sends[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.send, &sends[at]));
    MESHPOST_MP(::mp::mlx5::get_descriptors(&one.sent, &sends[at]));
  }
  Launch launch;
  launch.with_host = true;
  launch.threads = {64, 1, 1};
  world.run(Exchange{all.data, peers.own, peers.previous(), out.data(), in.data(), wrong.data},
            launch);
  MESHPOST_MP(mp_wait_all(static_cast<u32>(receives.size()), receives.data()));
  MESHPOST_MP(mp_wait_all(static_cast<u32>(sends.size()), sends.data()));
  for (u32 rank = 0; rank < ranks; ++rank) require(wrong.data[rank] == 0, "all numbers are right");
});

TEST(MpRanks, begin_sends_of_all_that_their_threads_have_stored) {
  for (u32 const processes : {1u, 2u}) {
    test::Job job("mp_ranks", processes);
    test::expect_well(job.wait());
  }
}

TEST(MpRanks, do_the_same_between_hosts) { test::run_out_of_reach("mp_ranks", 2); }

struct AwaitOne {
  ::mp::mlx5::wait_desc_t descriptor;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id().value == 1) ::mp::device::mlx5::wait(self, descriptor);
  }
};

enum class Wrong { empty_send, empty_wait, sent_twice };

struct Misuse {
  Wrong wrong;
  ::mp::mlx5::send_desc_t send;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id().value != 1) return;
    if (wrong == Wrong::empty_wait) ::mp::device::mlx5::wait(self, {});
    ::mp::device::mlx5::send(self, wrong == Wrong::empty_send ? ::mp::mlx5::send_desc_t{} : send);
    ::mp::device::mlx5::send(self, send);
  }
};

Role const wrong_ranks("mp_wrong_ranks", [] {
  Peers const peers;
  World world(own_device(2));
  Launch launch;
  launch.with_host = true;
  for (auto const wrong : {Wrong::empty_send, Wrong::empty_wait, Wrong::sent_twice}) {
    test::Registered<int> one(1);
    mp_request_t send, receive;
    MESHPOST_MP(mp_irecv(one.values.data(), 4, 0, &one.reg, &receive));
    MESHPOST_MP(mp_send_prepare(one.values.data(), 4, 0, &one.reg, &send));
    ::mp::mlx5::send_desc_t descriptor;
    MESHPOST_MP(::mp::mlx5::get_descriptors(&descriptor, &send));
    try {
      world.run(Misuse{wrong, descriptor}, launch);
    } catch (Error const& error) {
      test::say(error.what());
    }
    if (wrong != Wrong::sent_twice)  // as a kernel would
      memory::store(descriptor.begin.ptr, descriptor.begin.value, Order::system);
    MESHPOST_MP(mp_wait(&send));
    MESHPOST_MP(mp_wait(&receive));
  }
});

TEST(MpRanks, that_use_descriptors_wrongly_end_their_run) {
  test::Job job("mp_wrong_ranks", 1);
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out, AllOf(HasSubstr("LibMP's send: get_descriptors has not filled"),
                                HasSubstr("LibMP's wait: get_descriptors has not filled"),
                                HasSubstr("this descriptor's request has begun before")));
}

/// A rank waits for a message that `sender` does not send.
void await_in_vain(int sender) {
  World world(own_device(2));
  test::Registered<int> in(1);
  mp_request_t receive;
  MESHPOST_MP(mp_irecv(in.values.data(), 4, sender, &in.reg, &receive));
  ::mp::mlx5::wait_desc_t descriptor;
  MESHPOST_MP(::mp::mlx5::get_descriptors(&descriptor, &receive));
  Launch launch;
  launch.with_host = true;
  auto run = world.launch(AwaitOne{descriptor}, launch);
  test::say("waits");
  try {
    run.wait();
  } catch (Error const& error) {
    test::say(error.what());
  }
  if (mp_wait(&receive) == MP_FAILURE) test::say(mp_last_error());
}

Role const late_rank("mp_late_rank", [] {
  Peers const peers;
  await_in_vain(0);
});

TEST(MpRanks, that_wait_in_vain_end_their_run_after_the_deadline) {
  test::Job job("mp_late_rank", 1, {{"MESHPOST_DEADLINE", "0.5"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out,
              AllOf(HasSubstr("rank 1 waits until its word is >= "), HasSubstr("[deadline]")));
}

// Sends to a peer are carried out in the order of their descriptors.
Role const unbegun("mp_unbegun", [] {
  Peers const peers;
  test::Registered<int> one(2), two(3), in(9);
  mp_request_t first, second, receive;
  MESHPOST_MP(mp_irecv(in.values.data(), in.bytes(), 0, &in.reg, &receive));
  MESHPOST_MP(mp_send_prepare(one.values.data(), one.bytes(), 0, &one.reg, &first));
  ::mp::mlx5::send_desc_t descriptor;
  MESHPOST_MP(::mp::mlx5::get_descriptors(&descriptor, &first));
  MESHPOST_MP(mp_isend(two.values.data(), two.bytes(), 0, &two.reg, &second));
  require(mp_wait(&second) == MP_FAILURE, "an error");
  test::say(mp_last_error());
});

TEST(MpRanks, that_have_not_begun_a_send_are_named_by_those_behind_it) {
  test::Job job("mp_unbegun", 1, {{"MESHPOST_DEADLINE", "0.3"}});
  auto const& all = job.wait();
  test::expect_well(all);
  EXPECT_THAT(all[0].out,
              AllOf(HasSubstr("mp_wait: send of 12 bytes to process 0"),
                    HasSubstr("see that a kernel begins the send of 8 bytes to process 0")));
}

Role const bereft_rank("mp_bereft_rank", [] {
  Peers const peers;
  if (peers.own == 0) return await_in_vain(1);
  test::say("waits");
  for (;;) pause();
});

TEST(MpRanks, end_their_run_if_the_peer_is_killed) {
  test::Job job("mp_bereft_rank", 2);
  job.wait_for(0, "waits");
  job.wait_for(1, "waits");
  job.kill(1);
  auto const& all = job.wait();
  EXPECT_THAT(all[0].out, AllOf(HasSubstr("on rank 1"), HasSubstr("LibMP's operations have failed"),
                                HasSubstr("process 1"), HasSubstr("[peer lost]")));
  EXPECT_LT(all[0].seconds, 10);
}

}  // namespace
}  // namespace meshpost
