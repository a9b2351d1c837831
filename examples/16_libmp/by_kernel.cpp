// A LibMP program whose requests a kernel begins and awaits: each process sends numbers to the next
// one. The kernel's ranks run on GPUs and on CPU devices.
#define MESHPOST_MP_WITHOUT_MPI  // with MPI: mp_init(MPI_COMM_WORLD, ...)
#include <mp.h>
#include <mp/device.cuh>

#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int count = 1000, steps = 10;

// mp.h has written the reason to stderr.
void check(int status) {
  if (status != 0) std::exit(1);
}

// [kernel]
struct Step {
  mp::mlx5::send_desc_t send;
  mp::mlx5::wait_desc_t sent, received;
};

struct Exchange {
  Step const* all;
  int* out;
  int const* in;
  int* sum;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    if (self.id().value != 0) return;
    for (int step = 0; step < steps; ++step) {
      self.each(count, [&](meshpost::u64 i) { out[i] = step; });
      mp::device::mlx5::send(self, all[step].send);
      mp::device::mlx5::wait(self, all[step].received);
      if (self.thread() == 0) *sum += in[step * count + step];
      mp::device::mlx5::wait(self, all[step].sent);  // before `out` changes
    }
  }
};
// [/kernel]

int main() try {
  int process = 0, processes = 1;
  check(mp_init_job(nullptr, 0, MP_INIT_DEFAULT, 0, &process, &processes));  // who is there?
  mp_finalize();
  int const next = (process + 1) % processes, previous = (process + processes - 1) % processes;
  int const peers[] = {next, previous};
  check(mp_init_job(peers, 2, MP_INIT_DEFAULT, 0, nullptr, nullptr));

  bool right = false;
  {
    // [host]
    meshpost::WorldOptions options;
    options.alone = true;  // only this process's devices; LibMP joins the processes
    meshpost::World world(options);
    auto& device = *world.devices().front();
    using meshpost::Bytes, meshpost::MemoryKind;
    auto const out = device.allocate(Bytes{count * sizeof(int)}, MemoryKind::device);
    auto const in = device.allocate(Bytes{steps * count * sizeof(int)}, MemoryKind::device);
    auto const all = device.allocate(Bytes{steps * sizeof(Step)}, MemoryKind::pinned);
    auto const sum = device.allocate(Bytes{sizeof(int)}, MemoryKind::pinned);
    mp_reg_t out_reg, in_reg;
    check(mp_register(out.data(), out.size(), &out_reg));
    check(mp_register(in.data(), in.size(), &in_reg));

    std::vector<mp_request_t> sends(steps), receives(steps);
    for (int step = 0; step < steps; ++step) {
      auto& one = *new (all.as<Step>() + step) Step;
      constexpr int bytes = count * sizeof(int);
      check(mp_irecv(in.as<int>() + step * count, bytes, previous, &in_reg, &receives[step]));
      check(mp::mlx5::get_descriptors(&one.received, &receives[step]));
      check(mp_send_prepare(out.data(), bytes, next, &out_reg, &sends[step]));
      check(mp::mlx5::get_descriptors(&one.send, &sends[step]));
      check(mp::mlx5::get_descriptors(&one.sent, &sends[step]));
    }
    *sum.as<int>() = 0;
    meshpost::Launch launch;
    launch.with_host = true;  // LibMP's thread ends the rank's waits
    world.run(Exchange{all.as<Step>(), out.as<int>(), in.as<int>(), sum.as<int>()}, launch);
    check(mp_wait_all(steps, receives.data()));
    check(mp_wait_all(steps, sends.data()));
    // [/host]
    right = *sum.as<int>() == steps * (steps - 1) / 2;
    check(mp_deregister(&out_reg));
    check(mp_deregister(&in_reg));
    mp_finalize();  // waits for all
  }
  std::printf("process %d of %d: its kernel exchanged %d messages%s\n", process, processes, steps,
              right ? "" : ", not all of them right");
  return right ? 0 : 1;
} catch (meshpost::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
