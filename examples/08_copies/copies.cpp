// Copies between any two places: host memory, pinned memory, devices. The library finds the place
// of a pointer and the fastest way.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

namespace mp = meshpost;

int main() try {
  // MESHPOST_DEVICES, else all GPUs, or CPU devices if there are none
  auto const devices = mp::open_devices(mp::Config::from_environment().devices);
  mp::use_devices_for_copies(devices);
  auto& first = *devices.front();
  auto& last = *devices.back();

  // [copy]
  std::vector<int> numbers(1000), back(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto const here = first.allocate(mp::Bytes{4000}, mp::MemoryKind::device);
  auto const there = last.allocate(mp::Bytes{4000}, mp::MemoryKind::device);
  mp::copy(here.data(), numbers.data(), mp::Bytes{4000});                       // host to device
  auto under_way = mp::copy_async(there.data(), here.data(), mp::Bytes{4000});  // to another device
  under_way.wait();  // throws if it failed
  mp::copy(back.data(), there.data(), mp::Bytes{4000});
  // [/copy]
  if (back != numbers) return 1;

  // [block]
  // Columns 0 to 9 of a matrix of 20 rows and 50 columns, to a matrix of 20 rows and 10 columns.
  std::vector<int> columns(200);
  mp::Pitch const wide{mp::Bytes{50 * sizeof(int)}, {}}, narrow{mp::Bytes{10 * sizeof(int)}, {}};
  mp::BlockShape const block{mp::Bytes{10 * sizeof(int)}, 20};
  mp::copy_async(columns.data(), narrow, there.data(), wide, block).wait();
  // [/block]
  for (int i = 0; i < 200; ++i)
    if (columns[i] != i / 10 * 50 + i % 10) return 1;

  // [batch]
  // Swaps two halves, by way of `here`. The last two copies wait for the first two.
  int *const a = there.as<int>(), *const b = a + 500, *const spare = here.as<int>();
  mp::Bytes const half{500 * sizeof(int)};
  std::vector<mp::Segment> const swap{
      {spare, a, half}, {spare + 500, b, half}, {a, spare + 500, half}, {b, spare, half}};
  mp::copy_batch(swap).wait();
  // [/batch]
  mp::copy(back.data(), there.data(), mp::Bytes{4000});
  for (int i = 0; i < 1000; ++i)
    if (back[i] != (i + 500) % 1000) return 1;

  // [stream]
  auto const stream = first.make_stream();
  stream->fill(here.data(), 7, mp::Bytes{4000});
  auto filled = mp::copy_async(there.data(), here.data(), mp::Bytes{4000}, {{stream.get()}});
  stream->fill(here.data(), 8, mp::Bytes{4000});  // after the copy
  filled.wait();
  // [/stream]
  mp::copy(back.data(), there.data(), mp::Bytes{4000});
  for (int const number : back)
    if (number != 0x07070707) return 1;
  stream->synchronize();
  std::printf("copied between the host, %s and %s\n", first.name().c_str(), last.name().c_str());
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
