// An error for each misuse by a kernel: it names the operation, the value and the allowed values.
#include "dcuda.hpp"
#include "support/sink.hpp"

namespace meshpost {
namespace {

using test::DeviceArray;
using test::error_of;
using test::Program;
using test::says;

enum class Wrong {
  tag,
  negative_tag,
  notify_tag,
  wait_tag,
  test_tag,
  rank,
  notify_rank,
  communicator,
  size,
  offset,
  beyond_target,
  source_before,
  source_behind,
  none,
  freed,
  invented,
  free_none,
  flush_freed,
  count,
  stop_without_start,
  too_many_timers,
  after_finish
};

struct Case {
  Wrong wrong;
  char* bytes;  // 64 a rank
};

__device__ void do_wrong(Case const& what, dcuda_state& gst, dcuda_win win, dcuda_win freed,
                         char* mine) {
  switch (what.wrong) {
    case Wrong::tag: return dcuda_put_notify(gst, win, 0, 0, 8, mine, 256);
    case Wrong::negative_tag: return dcuda_put_notify(gst, win, 0, 0, 8, mine, -1);
    case Wrong::notify_tag: return dcuda_notify(gst, 0, DCUDA_COMM_WORLD, 256);
    case Wrong::wait_tag: return dcuda_wait_notifications(gst, 256, 1);
    case Wrong::test_tag: return (void)dcuda_test_notifications(gst, -7, 1);
    case Wrong::rank: return dcuda_put(gst, win, 3, 0, 8, mine);
    case Wrong::notify_rank: return dcuda_notify(gst, -2, DCUDA_COMM_DEVICE, 0);
    case Wrong::communicator: return dcuda_comm_barrier(gst, 5);
    case Wrong::size: return dcuda_put(gst, win, 0, 0, -8, mine);
    case Wrong::offset: return dcuda_put(gst, win, 0, -1, 8, mine);
    case Wrong::beyond_target: return dcuda_put_notify(gst, win, 0, 60, 8, mine, 0);
    case Wrong::source_before: return dcuda_put(gst, win, 0, 0, 8, mine - 8);
    case Wrong::source_behind: return dcuda_put(gst, win, 0, 0, 8, mine + 60);
    case Wrong::none: return dcuda_put(gst, DCUDA_WIN_NONE, 0, 0, 8, mine);
    case Wrong::freed: return dcuda_put(gst, freed, 0, 0, 8, mine);
    case Wrong::invented: return dcuda_put(gst, dcuda_win{12345}, 0, 0, 8, mine);
    case Wrong::free_none: return dcuda_win_free(gst, DCUDA_WIN_NONE);
    case Wrong::flush_freed: return dcuda_win_flush(gst, freed);
    case Wrong::count: return dcuda_wait_notifications(gst, 0, -1);
    case Wrong::stop_without_start: return dcuda_stop_cpu_timer(gst);
    case Wrong::too_many_timers:
      dcuda_start_cpu_timer(gst);
      for (int i = 0; i < 65; ++i) dcuda_stop_cpu_timer(gst);
      return;
    case Wrong::after_finish: break;
  }
}

__global__ void wrong(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  void* data = nullptr;
  dcuda_get_data(gst, &data);
  Case const what = *static_cast<Case*>(data);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  char* const mine = what.bytes + 64 * rank;
  dcuda_win freed, win;
  dcuda_win_create(gst, DCUDA_COMM_WORLD, mine, 64, &freed);
  dcuda_win_free(gst, freed);
  dcuda_win_create(gst, DCUDA_COMM_WORLD, mine, 64, &win);
  if (rank == 1) do_wrong(what, gst, win, freed, mine);
  dcuda_gpu_finish(gst);
  if (rank == 1 && what.wrong == Wrong::after_finish) dcuda_notify(gst, 0, DCUDA_COMM_WORLD, 0);
}

Error error_of(Wrong what) {
  test::Listener const quiet;
  DeviceArray<char> bytes(3 * 64);
  Program const program(wrong, 3);
  auto const error = error_of([&] { program.run(Case{what, bytes.data()}); });
  return error;
}

void expect(Wrong what, std::initializer_list<std::string_view> pieces) {
  auto const error = error_of(what);
  EXPECT_TRUE(says(error, Kind::kernel_failed, {"rank 1"}));
  EXPECT_TRUE(says(error, Kind::kernel_failed, pieces));
}

TEST(DcudaMisuse, of_a_tag_is_named) {
  expect(Wrong::tag, {"put_notify in", "the tag is 256", "0 to 255"});
  expect(Wrong::negative_tag, {"put_notify in", "the tag is -1", "0 to 255"});
  expect(Wrong::notify_tag, {"notify in", "the tag is 256", "0 to 255"});
  expect(Wrong::wait_tag, {"wait in", "the tag is 256", "0 to 255"});
  expect(Wrong::test_tag, {"test in", "the tag is -7", "0 to 255"});
}

TEST(DcudaMisuse, of_a_rank_or_communicator_is_named) {
  expect(Wrong::rank, {"put in", "the rank is 3", "0 to 2"});
  expect(Wrong::notify_rank, {"notify in", "the rank is -2", "0 to 2"});
  expect(Wrong::communicator, {"barrier in", "the communicator is 5", "0 to 1"});
}

TEST(DcudaMisuse, of_a_target_range_is_named) {
  expect(Wrong::size, {"put in", "the size is -8"});
  expect(Wrong::offset, {"put in", "the offset is -1"});
  expect(Wrong::beyond_target, {"put_notify in", "60 to 67", "64"});
}

TEST(DcudaMisuse, of_a_source_outside_the_window_is_named) {
  expect(Wrong::source_before, {"put in", "bytes -8 to -1", "64", "inside the window"});
  expect(Wrong::source_behind, {"put in", "bytes 60 to 67", "64", "inside the window"});
}

TEST(DcudaMisuse, of_a_window_handle_is_named) {
  expect(Wrong::none, {"put in", "DCUDA_WIN_NONE"});
  expect(Wrong::freed, {"put in", "was freed"});
  expect(Wrong::invented, {"put in", "never created"});
  expect(Wrong::free_none, {"DCUDA_WIN_NONE"});
  expect(Wrong::flush_freed, {"flush in", "was freed"});
}

TEST(DcudaMisuse, of_counts_and_timers_is_named) {
  expect(Wrong::count, {"wait in", "the count is -1"});
  expect(Wrong::stop_without_start, {"timer in", "without start"});
  expect(Wrong::too_many_timers, {"timer in", "64 intervals"});
}

TEST(DcudaMisuse, after_finish_is_named) {
  expect(Wrong::after_finish, {"after dcuda_gpu_finish"});
}

TEST(DcudaMisuse, leaves_the_context_usable) {
  test::Listener const quiet;
  DeviceArray<char> bytes(3 * 64);
  Program const program(wrong, 3);
  for (int i = 0; i < 2; ++i) {
    error_of([&] { program.run(Case{Wrong::rank, bytes.data()}); });
    error_of([&] { program.run(Case{Wrong::none, bytes.data()}); });
  }
}

__global__ void waits_for_ever(dcuda_context_handle dcuda) {
  __shared__ dcuda_state gst;
  dcuda_gpu_init(dcuda, gst);
  int rank = 0;
  dcuda_comm_rank(gst, DCUDA_COMM_WORLD, &rank);
  if (rank == 1) dcuda_wait_notifications(gst, 17, 2);
  dcuda_gpu_finish(gst);
}

TEST(DcudaMisuse, a_wait_for_nothing_does_not_hang) {
  Program const program(waits_for_ever, 3);
  EXPECT_TRUE(says(error_of([&] { program.run(); }), Kind::deadlock,
                   {"rank 1", "tag 17", "0 of 2", "the world's tags"}));
}

}  // namespace
}  // namespace meshpost
