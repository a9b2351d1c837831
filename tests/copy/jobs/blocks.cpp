// Blocks of rows, and copies in streams, between processes.
#include <meshpost/copy/job_memory.hpp>

#include <random>

#include "copy/jobs/jobs.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::require;
using test::Role;

// Each process fetches blocks of the next one's array, and puts blocks into its part of the next.
Role const blocks("blocks", [] {
  JobMemory job;
  u32 const me = job.process(), next = (me + 1) % job.processes();
  auto const device = open_devices(test::devices())[0];
  std::mt19937 random(me + 5);
  constexpr u64 size = 100'000;
  auto const byte = [](u32 process, u64 i) { return static_cast<u8>(i * 5 + i / 300 + process); };
  for (bool const of_job : {false, true}) {
    auto const memory = of_job ? job.allocate(*device, Bytes{size})
                               : device->allocate(Bytes{size}, MemoryKind::device);
    std::vector<u8> mine(size);
    for (u64 i = 0; i < size; ++i) mine[i] = byte(me, i);
    device->write(memory.data(), mine.data(), Bytes{size});
    auto const field = job.expose(memory.data(), Bytes{size}, "field");
    for (int i = 0; i < 30; ++i) {
      BlockShape const shape{Bytes{random() % 200}, random() % 12, random() % 4};
      u64 const row = shape.width + random() % 50, slice = 12 * row + random() % 60;
      Pitch const there{Bytes{row}, Bytes{slice}}, here{Bytes{row + 3}, Bytes{12 * row + 40}};
      u64 const offset = random() % (size - 4 * slice);
      std::vector<u8> target(4 * (12 * row + 40) + 40, 99);
      auto const stream = device->make_stream();
      auto const range = field.at(next, offset, Bytes{4 * slice});
      CopyOptions options;
      if (random() % 2 == 0) options.streams = {stream.get()};
      copy_async(target.data(), here, range, there, shape, options).wait();
      auto expected = std::vector<u8>(target.size(), 99);
      for (u64 s = 0; s < shape.slices; ++s)
        for (u64 r = 0; r < shape.rows; ++r)
          for (u64 x = 0; x < shape.width; ++x)
            expected[s * here.slice + r * here.row + x] =
                byte(next, offset + s * slice + r * row + x);
      require(target == expected, "the block came, and nothing else");
    }
    auto const read_by_all = job.expose(nullptr, Bytes{}, "meet");
    auto const stream = device->make_stream();
    std::vector<u8> const source(64 * 64, static_cast<u8>(200 + me));
    auto put = copy_async(field.at(next, 10, Bytes{64 * 100}), {Bytes{100}, {}}, source.data(),
                          {Bytes{64}, {}}, {Bytes{40}, 64}, {{stream.get()}});
    stream->synchronize();  // goes on after the copy
    put.wait();
    auto const written = job.expose(nullptr, Bytes{}, "meet");
    device->read(mine.data(), memory.data(), Bytes{size});
    u32 const from = (me + job.processes() - 1) % job.processes();
    for (u64 i = 0; i < 10 + 64 * 100; ++i) {
      bool const in = i >= 10 && (i - 10) % 100 < 40;
      require(mine[i] == (in ? static_cast<u8>(200 + from) : byte(me, i)), "rows and between");
    }
    print_error([&] {
      copy_async(mine.data(), {Bytes{10}, {}}, field.at(next, 0, Bytes{100}), {Bytes{31}, {}},
                 {Bytes{10}, 4});
    });
    print_error([&] {
      copy_async(mine.data(), {Bytes{9}, {}}, field.at(next, 0, Bytes{100}), {Bytes{30}, {}},
                 {Bytes{10}, 2});
    });
    auto const over = job.expose(nullptr, Bytes{}, "meet");
  }
});

// Rows reach over exactly their range.
Role const whole_blocks("whole_blocks", [] {
  JobMemory job;
  auto const memory = job.allocate(Bytes{100});
  auto const field = job.expose(memory.data(), Bytes{100}, "field");
  std::vector<u8> here(100);
  copy_async(here.data(), {Bytes{10}, {}}, field.at(0, 0, Bytes{100}), {Bytes{30}, {}},
             {Bytes{10}, 4})
      .wait();
  auto const over = job.expose(nullptr, Bytes{}, "meet");
});

TEST(JobCopies, of_blocks_and_in_streams_arrive) {
  for (auto const& variables :
       {test::Variables{}, test::Variables{{test::without_other_memory, "1"}}}) {
    test::Job job("blocks", 3, variables);
    auto const& all = job.wait();
    test::expect_well(all);
    for (auto const& one : all) {
      EXPECT_THAT(one.out,
                  testing::HasSubstr("the block reaches over 103 bytes, its range has 100"));
      EXPECT_THAT(one.out, testing::HasSubstr("row pitch of 9 bytes is less than a row of 10"));
    }
  }
  test::Job job("whole_blocks", 2);
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost
