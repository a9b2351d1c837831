// Headers that kernels include compile at run time, with NVRTC: no header of a host among them.
// Needs no GPU.
#include <nvrtc.h>

#include <cstdio>
#include <future>
#include <string>
#include <vector>

namespace {

char const* const source = R"cuda(
#include <meshpost/meshpost.hpp>
using namespace meshpost;

struct Kernel {
  Window<float> field;
  Window<u64> words;
  Communicator split;

  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = field.local(self);
    RankId const next{(self.id() + 1) % self.size()};
    self.each(mine.size(), [&](u64 i) { mine[i] = static_cast<float>(i); });
    self.put(field.at(next, 4), mine.subspan(0, 1));
    self.put_notify(field.at(next).subspan(1, 2), mine.subspan(2, 2), Tag{3});
    self.put_notify(field.at(next), mine.subspan(0, 1), words, Tag{1});
    auto const face = StridedLayout::dense({4, 3, 2}).subarray({1, 0, 0}, {1, 3, 2});
    self.put(field.at(next).strided(face), mine.strided(face));
    self.put_notify(field.at(next), mine.strided(face), Tag{3});
    self.put_notify(field.at(next).strided(face), mine.subspan(0, 6), words, Tag{1});
    self.notify(field, next, Tag{0});
    self.wait(field, Tag{3}, 1, next);
    while (!self.test(words, Tag{1})) {
    }
    self.flush(field);
    self.publish();
    self.get(mine.subspan(0, 2), field.at(next, 2));
    self.put_value(words.at(next), u64{7});
    self.wait_until(words.local(self), Compare::greater_equal, u64{7});
    self.barrier();
    self.barrier(self.device_communicator());
    self.barrier(split);
    self.all_reduce(split, mine, Sum{});
    self.reduce(split, mine, Max{}, RankId{0});
    self.reduce_scatter(split, mine.subspan(0, 1), mine, Sum{});
    self.broadcast(split, words.local(self), RankId{0});
    self.all_gather(split, mine, mine.subspan(0, 1));
    auto const kept = self.scratch<double>(8);
    self.start_timer();
    kept[0] = 1.0;
    self.stop_timer();
    self.log("rank {} of {} at {} {} {}", self.id(), self.size(), 1.5f, true, 'c');
    self.mark("here");
    if (self.now() == 0) self.fail("no time");
  }
};

extern "C" __global__ void entry(__grid_constant__ Kernel const kernel, __grid_constant__ RunState const state) {
  detail::run_on_gpu<WITH_LANES>(kernel, state);
}
)cuda";

bool check(nvrtcResult result, char const* what) {
  if (result == NVRTC_SUCCESS) return true;
  std::fprintf(stderr, "%s: %s\n", what, nvrtcGetErrorString(result));
  return false;
}

bool compiles(std::vector<char const*> options, char const* lanes) {
  options.push_back(lanes);
  nvrtcProgram program = nullptr;
  if (!check(nvrtcCreateProgram(&program, source, "kernel.cu", 0, nullptr, nullptr), "create"))
    return false;
  auto const compiled =
      nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string log(size, ' ');
  nvrtcGetProgramLog(program, log.data());
  std::fputs(log.c_str(), stderr);
  if (!check(compiled, "compile")) return false;
  std::size_t cubin = 0;
  if (!check(nvrtcGetCUBINSize(program, &cubin), "cubin") || cubin == 0) return false;
  std::printf("%s: %zu bytes of code\n", lanes, cubin);
  nvrtcDestroyProgram(&program);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<char const*> options = {"--std=c++20", "-arch=sm_90"};
  for (int i = 1; i < count; ++i) options.push_back(arguments[i]);
  auto with =
      std::async(std::launch::async, [&] { return compiles(options, "-DWITH_LANES=true"); });
  bool const without = compiles(options, "-DWITH_LANES=false");
  return with.get() && without ? 0 : 1;
}
