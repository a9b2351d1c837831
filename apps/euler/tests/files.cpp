// Restart files, and what is observed of a field.
#include <gmock/gmock.h>

#include <meshpost/base/error.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "euler/observe.hpp"
#include "euler/options.hpp"

namespace euler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

State filled(meshpost::Extents3 cells) {
  State state{{cells, 0.02}, 7, 0.5, 0.001, {}};
  auto const& n = cells;
  InitialState const start(state.problem);
  std::vector<double> values(components * n.x * n.y * n.z);
  for (u32 c = 0; c < components; ++c)
    for (u64 i = 0; i < n.x * n.y * n.z; ++i)
      values[c * n.x * n.y * n.z + i] =
          start.at(static_cast<i64>(i % n.x), static_cast<i64>(i / n.x % n.y),
                   static_cast<i64>(i / n.x / n.y), c);
  state.values = std::move(values);
  return state;
}

template <class Work>
std::string error_of(Work const& work) {
  try {
    work();
  } catch (meshpost::Error const& error) {
    return error.what();
  }
  return "no error";
}

class Restart : public testing::Test {
 protected:
  void SetUp() override { save(file_, filled({3, 4, 6})); }
  void TearDown() override { std::filesystem::remove(file_); }
  void change(long place, char byte) const {
    std::fstream out(file_, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(place);
    out.put(byte);
  }

  std::string file_ = testing::TempDir() + "euler_restart";
};

TEST_F(Restart, gives_back_the_state) {
  auto const state = filled({3, 4, 6}), read = load(file_);
  EXPECT_EQ(read.problem.cells.y, 4u);
  EXPECT_EQ(read.problem.amplitude, 0.02);
  EXPECT_EQ(read.step, 7u);
  EXPECT_EQ(read.time, 0.5);
  EXPECT_EQ(read.dt, 0.001);
  EXPECT_EQ(read.values, state.values);
}

TEST_F(Restart, names_a_file_that_was_cut) {
  for (u64 const size : {u64{2959}, u64{2000}, u64{80}}) {
    std::filesystem::resize_file(file_, size);
    EXPECT_THAT(error_of([&] { load(file_); }), HasSubstr("3 x 4 x 6 cells take 2960")) << size;
  }
  for (u64 const size : {u64{79}, u64{10}, u64{0}}) {
    std::filesystem::resize_file(file_, size);
    EXPECT_THAT(error_of([&] { load(file_); }), HasSubstr("is no restart file")) << size;
  }
}

TEST_F(Restart, names_a_file_that_was_changed) {
  change(1000, 'x');
  EXPECT_THAT(error_of([&] { load(file_); }), HasSubstr("check sum is wrong"));
}

TEST_F(Restart, finds_a_change_of_the_header) {
  change(48, 'x');  // the time
  EXPECT_THAT(error_of([&] { load(file_); }), HasSubstr("check sum is wrong"));
}

TEST_F(Restart, names_impossible_extents) {
  for (long const byte : {23, 31, 39}) change(byte, '\x7f');
  EXPECT_THAT(error_of([&] { load(file_); }), HasSubstr("no possible grid"));
}

TEST_F(Restart, keeps_its_step_and_refuses_another_grid) {
  Options options;
  options.restart = file_;
  options.check = false;
  EXPECT_EQ(begin(options).dt, 0.001);
  options.grid = "3x4x7";
  EXPECT_THAT(error_of([&] { begin(options); }),
              AllOf(HasSubstr("--grid 3x4x7"), HasSubstr("has 3x4x6 cells; leave --grid out")));
  options.grid = "3x4x6", options.amplitude = 0.1;
  EXPECT_THAT(error_of([&] { begin(options); }), HasSubstr("began with 0.02"));
  options.amplitude.reset(), options.dt = 0.1;
  EXPECT_THAT(error_of([&] { begin(options); }), HasSubstr("Courant number is"));
}

TEST_F(Restart, names_a_cell_that_is_no_gas) {
  auto state = filled({3, 4, 6});
  state.values[state.place(2, 1, 3, density)] = -1;
  EXPECT_THAT(error_of([&] { state.largest_rate("--restart x"); }), HasSubstr("cell (2, 1, 3)"));
}

TEST(Observer, finds_the_mass_and_the_waves_however_the_field_is_cut) {
  Problem const problem{{12, 10, 8}, 0.02};
  auto const state = filled(problem.cells);
  Observer observer(state.problem);
  for (i64 cut : {0, 3}) {  // two parts along z
    meshpost::Box const box{{0, 0, cut}, {12, 10, cut == 0 ? 3 : 8}};
    std::vector<double> values;
    for (u32 c = 0; c < components; ++c)
      for (u64 i = 0; i < box.cells(); ++i) {
        auto const cell = box.cell_at(i);
        values.push_back(state.at(cell.x, cell.y, cell.z, c));
      }
    observer.add(box, values);
  }
  auto const frame = observer.frame(state);
  EXPECT_NEAR(frame.mass, 1.5 * 0.1 * 0.1 * 0.2, 1e-17);
  // (1 + cos x) (1 + cos y) (1 + cos z) / 8 of the amplitude, half a cell from z = 0
  double const middle = 0.02 / 8 * (1 + std::cos(3.14159265358979 / 8));
  for (double const mode : frame.modes) EXPECT_NEAR(mode, middle, 1e-12);
  EXPECT_EQ(observer.slice()[7 * 12], Problem::heavy);
  EXPECT_EQ(observer.slice()[3 * 12], Problem::light);
}

TEST(Observer, names_a_flow_that_has_become_too_fast) {
  auto state = filled({4, 4, 4});
  auto const look = [&] {
    Observer observer(state.problem);
    observer.add({{0, 0, 0}, {4, 4, 4}}, state.values);
    return observer.frame(state);
  };
  state.dt = 1;
  EXPECT_THAT(error_of(look), HasSubstr("stable to 1.25"));
  state.dt = 1e-4;
  EXPECT_EQ(error_of(look), "no error");
  state.values[state.place(1, 2, 3, energy)] = std::nan("");
  EXPECT_THAT(error_of(look), HasSubstr("step 7: cell (1, 2, 3) has no positive density"));
}

TEST(Symmetry, counts_cells_that_lost_it) {
  auto state = filled({4, 4, 4});
  EXPECT_EQ(asymmetric_cells(state), 0u);
  state.values[state.place(0, 1, 2, energy)] *= 1 + 1e-15;
  EXPECT_EQ(asymmetric_cells(state), 3u);  // it, and both that mirror it
}

}  // namespace
}  // namespace euler
