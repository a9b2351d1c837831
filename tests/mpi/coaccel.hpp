#pragma once
#include <gtest/gtest.h>
#include <meshpost/compat/coaccel_mpi.h>

#include <random>
#include <string>
#include <vector>

#include "mpi/communicators.hpp"
#include "support/boxed.hpp"
#include "support/bytes.hpp"
#include "support/sink.hpp"

namespace meshpost::test {

using Bytes8 = std::vector<unsigned char>;
constexpr unsigned char poison = 0xee;

inline int rank() { return rank_in(MPI_COMM_WORLD); }
inline int processes() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// The same random bytes in all processes.
inline Bytes8 bytes_of(unsigned seed, std::size_t size) {
  std::mt19937_64 random(seed);
  return random_data(random, size);
}

inline std::string last_error() {
  char const* const text = coaccel_last_error();
  return text ? text : "no error";
}
inline void expect_says(std::string const& text, std::vector<std::string> const& pieces) {
  for (auto const& piece : pieces) EXPECT_NE(text.find(piece), text.npos) << text;
}
inline void expect_refused(void const* result, std::vector<std::string> const& pieces) {
  EXPECT_EQ(result, nullptr);
  expect_says(last_error(), pieces);
}

/// A device that closes itself. It must open.
struct Opened {
  explicit Opened(std::string const& name) : device(coaccel_device_open(name.c_str())) {
    if (!device) ADD_FAILURE() << name << ": " << last_error();
  }
  ~Opened() { coaccel_device_close(device); }
  Opened(Opened const&) = delete;
  Opened& operator=(Opened const&) = delete;
  coaccel_device device;
};

struct Piece {
  void* dst;
  void const* src;
  std::size_t size;
};
inline void* start(coaccel_device device, std::vector<Piece> const& pieces) {
  std::vector<coaccel_address> dst, src;
  std::vector<std::size_t> sizes;
  for (auto const& one : pieces) {
    dst.push_back(one.dst);
    src.push_back(const_cast<void*>(one.src));
    sizes.push_back(one.size);
  }
  return coaccel_memcpy_start(device, static_cast<int>(pieces.size()), dst.data(), src.data(),
                              sizes.data(), COACCEL_ANY_DIRECTION);
}
/// The error; empty: none.
inline std::string finish(coaccel_device device, void* copy) {
  coaccel_memcpy_finish(device, copy);
  char const* const text = coaccel_last_error();
  return text ? text : "";
}
inline void copy(coaccel_device device, std::vector<Piece> const& pieces) {
  auto* const started = start(device, pieces);
  ASSERT_NE(started, nullptr) << last_error();
  EXPECT_EQ(finish(device, started), "");
}

/// A test of so many processes. Calls coaccel_mpi_init once in the program. No process leaves a
/// test before the others.
struct MpiDevices : testing::Test {
  explicit MpiDevices(int needed = 2) : needed_(needed) {}
  static void SetUpTestSuite() {
    register_boxed();
    static int const result = coaccel_mpi_init(MPI_COMM_WORLD);
    ASSERT_EQ(result, 0) << last_error();
  }
  void SetUp() override {
    if (processes() != needed_) GTEST_SKIP() << "needs " << needed_ << " processes";
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void TearDown() override {
    EXPECT_STREQ(coaccel_last_error(), nullptr);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::string other(int id) const {
    return "mpi:" + std::to_string(1 - rank()) + ":" + std::to_string(id);
  }

 private:
  int const needed_;
  Listener quiet_;  // coaccel_last_error() has the texts
};

}  // namespace meshpost::test
