// COACCEL's MPI devices in copies. Run by two processes.
#include "mpi/coaccel.hpp"

#include <algorithm>
#include <thread>

namespace meshpost::test {
namespace {

TEST(MpiDevicesBefore, coaccel_mpi_init_there_are_none) {
  Listener const quiet;
  expect_refused(coaccel_device_open("mpi:0"),
                 {"communicator", "coaccel_mpi_init", "link meshpost::mpi"});
  EXPECT_NE(coaccel_mpi_init(MPI_COMM_NULL), 0);
  expect_says(last_error(), {"coaccel_mpi_init", "MPI_COMM_NULL"});
}

TEST_F(MpiDevices, are_initialised_once) {
  EXPECT_NE(coaccel_mpi_init(MPI_COMM_WORLD), 0);
  expect_says(last_error(), {"has been called before", "call it once"});
}

TEST_F(MpiDevices, carry_pieces_of_any_layout_both_ways_in_one_call) {
  Opened const far(other(7)), cpu("cpu:0");
  constexpr std::size_t size = 3'000'001;  // more than the blocks that are sent at once
  auto const mine = bytes_of(static_cast<unsigned>(rank()), size);
  auto const theirs = bytes_of(static_cast<unsigned>(1 - rank()), size);
  Bytes8 in(size + 2, poison);
  auto* const there = static_cast<char*>(coaccel_device_malloc(far.device, size));
  ASSERT_NE(there, nullptr);
  auto* const here = static_cast<unsigned char*>(coaccel_device_malloc(cpu.device, size));
  std::fill(here, here + size, poison);
  copy(cpu.device, {{here, mine.data(), size}});
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::fill(in.begin(), in.end(), poison);
    // Rank 0 sends three pieces out of order, and takes one. The other takes two.
    auto const cut = rank() == 0 ? size : size / 3;
    copy(far.device, {{there, here, 1000},
                      {in.data() + 1, there, cut},
                      {there, here + 1000, 0},
                      {in.data() + 1 + cut, there, size - cut},
                      {there, here + 1000, size - 1000}});
    EXPECT_EQ(in.front(), poison);
    EXPECT_EQ(in.back(), poison);
    EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), in.begin() + 1)) << repeat;
  }
  coaccel_device_free(cpu.device, here);
  coaccel_device_free(far.device, there);
}

// Its memory is out of the host's reach, as a GPU's is.
TEST_F(MpiDevices, carry_memory_that_only_a_device_reaches) {
  Opened const far(other(8)), box("boxed:0");
  constexpr std::size_t size = 900'001;
  auto const mine = bytes_of(static_cast<unsigned>(rank()), size);
  auto const theirs = bytes_of(static_cast<unsigned>(1 - rank()), size);
  auto* const there = coaccel_device_malloc(far.device, size);
  auto* const out = static_cast<char*>(coaccel_device_malloc(box.device, size));
  auto* const in = static_cast<char*>(coaccel_device_malloc(box.device, size));
  Bytes8 result(size, poison);
  copy(box.device, {{out, mine.data(), size}, {in, result.data(), size}});
  copy(far.device, {{there, out, size}, {in, there, 500}, {in + 500, there, size - 500}});
  copy(box.device, {{result.data(), in, size}});
  EXPECT_EQ(result, theirs);
}

TEST_F(MpiDevices, match_messages_by_identifier_then_in_order) {
  Opened const one(other(0)), two(other(2147483647));
  auto* const there1 = coaccel_device_malloc(one.device, 100);
  auto* const there2 = coaccel_device_malloc(two.device, 100);
  constexpr int messages = 50;
  auto const text = bytes_of(3, 2 * messages * 100);
  Bytes8 in(text.size(), poison);
  std::vector<void*> copies;
  auto const begin = [&](coaccel_device device, void* there, int i, std::size_t size) {
    auto const at = static_cast<std::size_t>(i) * 100;
    copies.push_back(rank() == 0 ? start(device, {{there, text.data() + at, size}})
                                 : start(device, {{in.data() + at, there, size}}));
    EXPECT_NE(copies.back(), nullptr) << last_error();
  };
  // Each process begins with another identifier, and the messages have 0 to 99 bytes.
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < messages; ++i) {
      bool const first = half == rank();
      begin(first ? one.device : two.device, first ? there1 : there2, first ? i : messages + i,
            static_cast<std::size_t>(first ? i : 99 - i));
    }
  std::reverse(copies.begin(), copies.end());
  for (auto* const copy : copies) EXPECT_EQ(finish(one.device, copy), "");
  if (rank() == 0) return;
  for (std::size_t i = 0; i < 2 * messages; ++i)
    for (std::size_t k = 0; k < 100; ++k) {
      bool const sent = k < (i < messages ? i : 99 - (i - messages));
      ASSERT_EQ(in[i * 100 + k], sent ? text[i * 100 + k] : poison) << i << " " << k;
    }
}

TEST_F(MpiDevices, tell_both_sides_of_sizes_that_differ_and_can_be_opened_again) {
  Bytes8 bytes(200, poison);
  {
    Opened const far(other(1));
    auto* const there = coaccel_device_malloc(far.device, 200);
    std::string error;
    if (rank() == 0) error = finish(far.device, start(far.device, {{there, bytes.data(), 150}}));
    else error = finish(far.device, start(far.device, {{bytes.data(), there, 90}}));
    expect_says(error, {"150 bytes at its source and 90 at its target", "same sum of sizes"});
    if (rank() == 1) expect_says(error, {"process 0"});
    expect_refused(start(far.device, {{there, bytes.data(), 1}}), {"150 bytes"});
    EXPECT_EQ(bytes, Bytes8(200, poison));
  }
  Opened const again(other(1));
  auto* const there = coaccel_device_malloc(again.device, 200);
  if (rank() == 0) bytes.assign(200, 5);
  if (rank() == 0) copy(again.device, {{there, bytes.data(), 200}});
  else copy(again.device, {{bytes.data(), there, 200}});
  EXPECT_EQ(bytes, Bytes8(200, 5));
}

TEST_F(MpiDevices, end_a_wait_for_a_process_that_closes_its_device) {
  Opened const mine(other(2));
  Bytes8 bytes(100, poison);
  auto* const there = coaccel_device_malloc(mine.device, 100);
  if (rank() == 0) {
    // An earlier copy is unaffected.
    copy(mine.device, {{there, bytes.data(), 100}});
    for (bool const out : {true, false}) {
      auto* const copy = out ? start(mine.device, {{there, bytes.data(), 100}})
                             : start(mine.device, {{bytes.data(), there, 100}});
      auto const error = copy ? finish(mine.device, copy) : last_error();
      expect_says(error, {"mpi:1:2", "process 1 has closed its mpi:0:2", "peer lost"});
    }
  } else {
    copy(mine.device, {{bytes.data(), there, 100}});
  }
}

TEST_F(MpiDevices, are_usable_by_several_threads_at_once) {
  std::vector<std::thread> threads;
  for (int id = 10; id < 14; ++id)
    threads.emplace_back([this, id] {
      Opened const far(other(id));
      auto* const there = coaccel_device_malloc(far.device, 5000);
      for (unsigned i = 0; i < 20; ++i) {
        auto const text = bytes_of(static_cast<unsigned>(id) * 100 + i, 5000);
        Bytes8 in(5000, poison);
        if (rank() == static_cast<int>(i % 2)) {
          copy(far.device, {{there, text.data(), 5000}});
        } else {
          copy(far.device, {{in.data(), there, 5000}});
          EXPECT_EQ(in, text);
        }
      }
    });
  for (auto& one : threads) one.join();
}

TEST_F(MpiDevices, refuse_names_that_name_no_other_process) {
  expect_refused(coaccel_device_open(("mpi:" + std::to_string(rank())).c_str()),
                 {"this is process", "itself", "pageable or pinned"});
  expect_refused(coaccel_device_open("mpi:2:5"), {"open mpi:2:5", "there are 2 processes"});
  for (char const* name : {"mpi:", "mpi:x", "mpi:-1", "mpi:1:", "mpi:1:x", "mpi:1:2:3",
                           "mpi:1:2147483648", "mpi:99999999999999999999"})
    expect_refused(coaccel_device_open(name), {name, "mpi:RANK:ID"});
  Opened const far(other(3));
  expect_refused(coaccel_device_open(other(3).c_str()), {other(3), "it is open"});
}

TEST_F(MpiDevices, refuse_pieces_that_cannot_be_copied_and_begin_nothing) {
  Opened const far(other(4)), more(other(5));
  expect_refused(coaccel_device_malloc(far.device, 0), {"0 bytes on " + other(4)});
  auto* const there = static_cast<char*>(coaccel_device_malloc(far.device, 100));
  auto* const there2 = static_cast<char*>(coaccel_device_malloc(more.device, 100));
  Bytes8 bytes(200, 1);
  expect_refused(start(far.device, {{there + 50, bytes.data(), 51}}),
                 {"51 bytes at offset 50 of the 100 bytes", other(4), "coaccel_device_malloc"});
  expect_refused(start(far.device, {{there, there2, 10}}),
                 {"from " + other(5) + " to " + other(4), "memory of this process"});
  expect_refused(start(far.device, {{there, nullptr, 10}}), {"coaccel_memcpy_start", "null"});
  expect_refused(start(far.device, {{bytes.data(), there, 100}, {bytes.data() + 99, there2, 100}}),
                 {"two pieces touch the byte at", "overlap"});
  expect_refused(start(far.device, {{there2, bytes.data(), 100}, {bytes.data() + 50, there, 100}}),
                 {"two pieces touch"});
  // Two that only read the same bytes are allowed, and nothing of the above has been sent.
  if (rank() == 0) {
    copy(far.device, {{there, bytes.data(), 100}, {there2, bytes.data() + 50, 100}});
  } else {
    Bytes8 in(200, poison);
    copy(more.device, {{in.data(), there, 100}, {in.data() + 100, there2, 100}});
    EXPECT_EQ(in, bytes);
  }
}

}  // namespace
}  // namespace meshpost::test
