// A step in three ways: the host synchronises, streams notify each other, or one kernel does all.
// Each device computes A, sends to the next one, computes B, waits, and computes C. The work is of
// known length. tools/time_model.py compares its model with the times of the three.
//
//     three_ways [US_OF_A US_OF_B US_OF_C [STEPS [PREFIX]]]
//
// With PREFIX, each way writes the timeline of its host: PREFIX-sync.json and so on.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace mp = meshpost;

namespace {

constexpr mp::u64 cells = 1024;  // of a message
constexpr mp::Tag arrived{0};
constexpr mp::StreamId stream_of(mp::u32 device) { return {device, 0}; }

struct Loop {
  double us[3] = {1000, 1500, 500};  // of A, B and C
  mp::u32 steps = 20;
  std::string prefix;
};

// Work of known length. On the host it leaves the core to others for most of the time.
struct Work {
  double us;
  MESHPOST_FN void operator()() const {
    mp::u64 const end = mp::memory::clock_ns() + static_cast<mp::u64>(us * 1e3);
#if !defined(__CUDA_ARCH__)
    constexpr double spun = 50;  // us: a thread may wake up late
    if (us > spun)
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us - spun));
#endif
    while (mp::memory::clock_ns() < end) {
    }
  }
};

#if defined(__CUDACC__)
__global__ void kernel(Work const work) { work(); }
#endif

void launch(mp::Device const& device, mp::StreamEndpoint& end, char const* name, double us) {
  // [task]
  auto const task = end.task(name);
  // [/task]
#if defined(__CUDACC__)
  if (end.native()) {
    cudaSetDevice(static_cast<int>(device.index()));
    kernel<<<1, 1, 0, static_cast<cudaStream_t>(end.native())>>>(Work{us});
    return;
  }
#endif
  static_cast<void>(device);
  end.stream().call(Work{us});
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

mp::WorldOptions options(Loop const& loop, char const* way, mp::u32 ranks) {
  mp::WorldOptions wanted;
  wanted.ranks = ranks;
  wanted.trace_host = loop.prefix.empty() ? "" : loop.prefix + "-" + way + ".json";
  return wanted;
}

// The streams of this process's devices, and what they send and receive.
struct Streams {
  explicit Streams(mp::WorldOptions const& wanted) : world(wanted) {
    for (mp::u32 d = 0; d < world.devices().size(); ++d) ends.emplace_back(world, d);
  }
  mp::u32 rank(mp::u32 d) const { return world.first_rank() + d; }
  mp::u32 next(mp::u32 d) const { return (rank(d) + 1) % world.device_count(); }
  void launch_all(char const* name, double us) {
    for (mp::u32 d = 0; d < ends.size(); ++d) launch(*world.devices()[d], ends[d], name, us);
  }
  void synchronize_all() {
    for (auto& end : ends) end.synchronize();
  }

  mp::World world;
  mp::Window<double> box = world.window<double>(2 * cells, mp::Tags{1}, "box");
  std::vector<mp::StreamEndpoint> ends;
};

double by_host(Loop const& loop) {
  Streams all(options(loop, "sync", 1));
  std::vector<double> message(cells);
  auto const begin = std::chrono::steady_clock::now();
  for (mp::u32 step = 0; step < loop.steps; ++step) {
    all.launch_all("A", loop.us[0]);
    all.synchronize_all();
    for (mp::u32 d = 0; d < all.ends.size(); ++d) {
      all.box.read(mp::RankId{all.rank(d)}, 0, std::span(message));
      all.box.write(mp::RankId{all.next(d)}, cells, std::span<double const>(message));
      all.box.notify(stream_of(all.next(d)), arrived);
    }
    all.launch_all("B", loop.us[1]);
    all.synchronize_all();
    for (auto& end : all.ends) end.wait(all.box, arrived);
    all.synchronize_all();
    all.launch_all("C", loop.us[2]);
    all.synchronize_all();
  }
  return seconds_since(begin);
}

double by_streams(Loop const& loop) {
  Streams all(options(loop, "stream", 1));
  auto const begin = std::chrono::steady_clock::now();
  for (mp::u32 step = 0; step < loop.steps; ++step) {
    all.launch_all("A", loop.us[0]);
    for (mp::u32 d = 0; d < all.ends.size(); ++d)
      all.ends[d].put_notify(all.box.at(mp::RankId{all.next(d)}, cells),
                             all.box.part(mp::RankId{all.rank(d)}).first(cells),
                             stream_of(all.next(d)), arrived);
    all.launch_all("B", loop.us[1]);
    for (auto& end : all.ends) end.wait(all.box, arrived);
    all.launch_all("C", loop.us[2]);
  }
  all.synchronize_all();
  return seconds_since(begin);
}

// Three ranks of each device: one computes A and sends, one computes B, one waits and computes C.
struct Kernel {
  mp::Window<double> box;
  mp::Communicator of_device;
  double us[3];
  mp::u32 steps;

  MESHPOST_FN void operator()(mp::Rank& self) const {
    mp::u32 const part = self.id() % 3;
    mp::RankId const target{(self.id() + 5) % self.size()};  // part 2 of the next device
    for (mp::u32 step = 0; step < steps; ++step) {
      if (part == 2) self.wait(box, arrived);
      if (self.thread() == 0) Work{us[part]}();
      if (part == 0)
        self.put_notify(box.at(target, cells), box.local(self).subspan(0, cells), arrived);
      self.barrier(of_device);
    }
  }
};

double by_kernel(Loop const& loop) {
  mp::World world(options(loop, "kernel", 3));
  auto const box = world.window<double>(2 * cells, mp::Tags{1}, "box");
  mp::Launch how;
  how.thread_a_rank = true;  // CPU devices: a rank that computes does not delay another one
  auto const begin = std::chrono::steady_clock::now();
  world.run(
      Kernel{box, world.device_communicator(), {loop.us[0], loop.us[1], loop.us[2]}, loop.steps},
      how);
  return seconds_since(begin);
}

int run(Loop const& loop) {
  double const by[] = {by_host(loop), by_streams(loop), by_kernel(loop)};
  std::printf("%u steps: host %.3f ms, streams %.3f ms, kernel %.3f ms\n", loop.steps, by[0] * 1e3,
              by[1] * 1e3, by[2] * 1e3);
  // No way is faster than its work.
  double const least = loop.steps * (loop.us[0] + loop.us[2]) * 1e-6;
  return by[0] >= least && by[1] >= least && by[2] >= least ? 0 : 1;
}

}  // namespace

int main(int count, char** words) try {
  Loop loop;
  for (int i = 1; i < count && i <= 3; ++i) loop.us[i - 1] = std::atof(words[i]);
  if (count > 4) loop.steps = static_cast<mp::u32>(std::atoi(words[4]));
  if (count > 5) loop.prefix = words[5];
  return run(loop);
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
