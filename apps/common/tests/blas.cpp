#include "common/blas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "common/bf16.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::blas {
namespace {

// A device, a stream and random numbers in its memory. Every array has a margin that must not
// change.
class BlasTest : public testing::Test {
 protected:
  void SetUp() override {
    char const* const spec = std::getenv("MESHPOST_TEST_DEVICES");
    device_ = open_devices(spec ? std::string(spec) + ":0" : "cpu:1").front();
    stream_ = device_->make_stream();
    seed_ = std::random_device{}();
    RecordProperty("seed", static_cast<int>(seed_));
    generator_.seed(seed_);
  }

  bool has(Type type) const {
    try {
      require(device_->kind(), type);
      return true;
    } catch (Error const&) {
      return false;
    }
  }

  static void store(Type type, void* data, u64 index, double value) {
    if (type == Type::float64) static_cast<double*>(data)[index] = value;
    else if (type == Type::bf16) static_cast<Bf16*>(data)[index] = Bf16(static_cast<float>(value));
    else static_cast<float*>(data)[index] = static_cast<float>(value);
  }
  static double load(Type type, void const* data, u64 index) {
    if (type == Type::float64) return static_cast<double const*>(data)[index];
    if (type == Type::bf16) return static_cast<Bf16 const*>(data)[index];
    return static_cast<float const*>(data)[index];
  }

  struct Array {
    Allocation memory;
    std::vector<double> values;  // as stored
  };
  Array array(Type type, u64 count) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<unsigned char> host(count * size_of(type));
    Array result{device_->allocate(Bytes{host.size()}, MemoryKind::device), {}};
    for (u64 i = 0; i < count; ++i) {
      store(type, host.data(), i, uniform(generator_));
      result.values.push_back(load(type, host.data(), i));
    }
    device_->write(result.memory.data(), host.data(), Bytes{host.size()});
    return result;
  }
  std::vector<double> read(Type type, Array const& array) {
    std::vector<unsigned char> host(array.memory.size());
    device_->read(host.data(), array.memory.data(), array.memory.size());
    std::vector<double> result;
    for (u64 i = 0; i < array.values.size(); ++i) result.push_back(load(type, host.data(), i));
    return result;
  }

  void check_gemm(Type type, Shape shape, double alpha, double beta, u32 threads) {
    u64 const lda = shape.m + 3, ldb = shape.k + 2, ldc = shape.m + 5;
    auto const a = array(type, lda * shape.k), b = array(type, ldb * shape.n);
    auto const c = array(type, ldc * shape.n);
    Blas blas(device_, *stream_, threads);
    blas.gemm(type, shape, alpha, {a.memory.data(), lda}, {b.memory.data(), ldb}, beta,
              {c.memory.data(), ldc});
    stream_->synchronize();
    auto const result = read(type, c);
    double const sums = type == Type::float64 ? 0x1p-53 : 0x1p-24;
    double const result_rounding = type == Type::bf16 ? 0x1p-8 : 2 * sums;
    for (u64 j = 0; j < shape.n; ++j) {
      for (u64 i = 0; i < ldc; ++i) {
        double const old = c.values[i + j * ldc];
        if (i >= shape.m) {
          ASSERT_EQ(result[i + j * ldc], old) << "below the matrix, seed " << seed_;
          continue;
        }
        double sum = 0, size = 0;
        for (u64 s = 0; s < shape.k; ++s) {
          double const term = a.values[i + s * lda] * b.values[s + j * ldb];
          sum += term;
          size += std::abs(term);
        }
        double const expected = alpha * sum + beta * old;
        double const factors = type == Type::tf32 ? 2.1 * unit_roundoff(type) : 0;
        double const bound =
            std::abs(alpha) * size * (factors + static_cast<double>(shape.k + 2) * sums) +
            result_rounding * (std::abs(expected) + std::abs(beta * old));
        ASSERT_NEAR(result[i + j * ldc], expected, bound)
            << name(type) << " at " << i << ", " << j << ", seed " << seed_;
      }
    }
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  unsigned seed_ = 0;
  std::mt19937_64 generator_;
};

constexpr Type all_types[] = {Type::float64, Type::float32, Type::tf32, Type::bf16};

TEST_F(BlasTest, gemm_is_right_for_every_type_shape_and_number_of_threads) {
  std::uniform_int_distribution<u64> side(1, 70);
  for (auto const type : all_types) {
    if (!has(type)) continue;
    for (u32 const threads : {1u, 2u, 3u, 4u, 6u}) {
      check_gemm(type, {side(generator_), side(generator_), side(generator_)}, 1, 0, threads);
      check_gemm(type, {side(generator_), side(generator_), side(generator_)}, -0.5, 0.25, threads);
    }
    check_gemm(type, {1, 1, 1}, 1, 1, 6);
    check_gemm(type, {300, 270, 33}, 1, 1, 4);
  }
}

TEST_F(BlasTest, gemm_does_not_read_c_if_beta_is_0) {
  auto const a = array(Type::float64, 4), b = array(Type::float64, 4), c = array(Type::float64, 4);
  device_->fill(c.memory.data(), 0xff, c.memory.size());  // NaN
  Blas blas(device_, *stream_);
  blas.gemm(Type::float64, {2, 2, 2}, 1, {a.memory.data(), 2}, {b.memory.data(), 2}, 0,
            {c.memory.data(), 2});
  stream_->synchronize();
  for (double const value : read(Type::float64, c)) EXPECT_FALSE(std::isnan(value));
}

TEST_F(BlasTest, axpby_is_right_for_every_type) {
  for (auto const type : all_types) {
    for (u64 const count : {u64{1}, u64{7}, u64{100003}}) {
      auto const x = array(type, count), y = array(type, count);
      Blas blas(device_, *stream_, 3);
      blas.axpby(type, count, 0.5, x.memory.data(), -0.5, y.memory.data());
      stream_->synchronize();
      auto const result = read(type, y);
      double const rounding = type == Type::bf16      ? 0x1p-8
                              : type == Type::float64 ? 0x1p-52
                                                      : 0x1p-23;
      for (u64 i = 0; i < count; ++i)
        ASSERT_NEAR(result[i], (x.values[i] - y.values[i]) / 2, rounding)
            << name(type) << " at " << i << ", seed " << seed_;
    }
  }
}

TEST_F(BlasTest, several_streams_multiply_at_once) {
  constexpr u64 side = 96, streams = 4;
  auto const a = array(Type::float64, side * side), b = array(Type::float64, side * side);
  std::vector<Array> results;
  std::vector<std::unique_ptr<Stream>> queues;
  std::vector<Blas> blas;
  for (u64 s = 0; s < streams; ++s) {
    results.push_back(array(Type::float64, side * side));
    queues.push_back(device_->make_stream());
    blas.emplace_back(device_, *queues.back(), 2);
  }
  for (int round = 0; round < 20; ++round)
    for (u64 s = 0; s < streams; ++s)
      blas[s].gemm(Type::float64, {side, side, side}, 1, {a.memory.data(), side},
                   {b.memory.data(), side}, 0, {results[s].memory.data(), side});
  for (auto const& queue : queues) queue->synchronize();
  auto const first = read(Type::float64, results[0]);
  for (u64 s = 1; s < streams; ++s) EXPECT_EQ(read(Type::float64, results[s]), first);
  double sum = 0;
  for (u64 k = 0; k < side; ++k) sum += a.values[k * side] * b.values[k];
  EXPECT_NEAR(first[0], sum, 1e-12);
}

TEST_F(BlasTest, refuses_strides_that_are_too_small) {
  double number = 1;
  Blas blas(device_, *stream_);
  try {
    blas.gemm(Type::float64, {4, 4, 4}, 1, {&number, 4}, {&number, 3}, 0, {&number, 4});
    FAIL() << "it was accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), Kind::bad_argument);
    EXPECT_NE(std::string(error.what()).find("stride of B is 3"), std::string::npos);
  }
}

TEST(BlasNames, say_what_there_is) {
  for (auto const type : all_types) EXPECT_EQ(parse_type(name(type)), type);
  EXPECT_THROW(parse_type("half"), Error);
  EXPECT_THROW(require("cpu", Type::tf32), Error);
  EXPECT_THROW(require("abacus", Type::float32), Error);
}

TEST(Bf16, rounds_to_nearest_even) {
  EXPECT_EQ(float(Bf16(1.f + 0x1p-8f)), 1.f);
  EXPECT_EQ(float(Bf16(1.f + 0x1.8p-8f)), 1.f + 0x1p-7f);
  EXPECT_EQ(float(Bf16(1.f + 0x3p-8f)), 1.f + 0x1p-6f);
  EXPECT_TRUE(std::isnan(float(Bf16(NAN))));
}

}  // namespace
}  // namespace meshpost::blas
