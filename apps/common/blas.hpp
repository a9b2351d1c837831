#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "meshpost/device/device.hpp"

// The few BLAS operations that applications need: by cuBLAS on GPUs, by OpenBLAS on CPU devices.

namespace meshpost::blas {

/// Numbers of a matrix, and how products of them are summed.
enum class Type {
  float64,
  float32,
  tf32,  ///< stored as float32; GPUs round factors to 10 bits of mantissa and sum in float32
  bf16   ///< operands and result stored as bfloat16, sums in float32, rounded once at each call
};

/// "double", "float", "tf32", "bf16".
std::string_view name(Type type);
/// \throws Error(bad_argument) that lists the names
Type parse_type(std::string_view name);
/// Of one number in memory.
Bytes size_of(Type type);
/// Half the distance from 1 to the next larger number that a factor can be.
double unit_roundoff(Type type);

/// A matrix in memory, column by column: element (i, j) is data[i + j * stride].
struct Matrix {
  void* data = nullptr;
  u64 stride = 0;  ///< elements from one column to the next, at least the number of rows
};
struct ConstMatrix {
  void const* data = nullptr;
  u64 stride = 0;
};
/// C has m rows and n columns, A m rows and k columns, B k rows and n columns.
struct Shape {
  u64 m = 0, n = 0, k = 0;
};

/// Throws the errors that Blas's constructor and calls would throw for this kind and type.
/// \throws Error(bad_environment) naming what is missing and what has it
void require(std::string_view device_kind, Type type);

/// Sets the number of threads that OpenBLAS itself uses in a call, in the whole process; at first
/// 1. With more than one, OpenBLAS does one call at a time. That is good for one CPU device.
/// Several CPU devices should let Blas split calls instead. Must not be called while a call runs.
void use_openblas_threads(u32 threads);

/// Operations for one stream of one device. Used by one thread at a time; destroyed when the stream
/// is idle.
class Blas {
 public:
  /// `threads`: on a CPU device, the number of threads that share the work of a call. Threads of
  /// OpenBLAS itself (above) come on top. So several devices compute at once, each on its share of
  /// the cores.
  Blas(std::shared_ptr<Device> device, Stream& stream, u32 threads = 1);
  ~Blas();
  Blas(Blas&&) noexcept;
  Blas& operator=(Blas&&) = delete;

  /// Enqueues C = alpha A B + beta C and returns; with beta = 0, C isn't read. C must overlap
  /// neither A nor B. \throws Error(bad_argument) for a stride less than the rows,
  /// Error(bad_environment) for a type that the library beneath lacks, Error(device_failed)
  void gemm(Type type, Shape shape, double alpha, ConstMatrix a, ConstMatrix b, double beta,
            Matrix c);
  /// Enqueues y = a x + b y, element by element, of `count` elements each, and returns.
  void axpby(Type type, u64 count, double a, void const* x, double b, void* y);

  class Implementation {  // of a kind of device
   public:
    virtual ~Implementation() = default;
    virtual void gemm(Type type, Shape shape, double alpha, ConstMatrix a, ConstMatrix b,
                      double beta, Matrix c) = 0;
    virtual void axpby(Type type, u64 count, double a, void const* x, double b, void* y) = 0;
  };

 private:
  std::unique_ptr<Implementation> implementation_;
};

/// \cond The kinds of device.
std::unique_ptr<Blas::Implementation> on_cpu(Stream& stream, u32 threads);
std::unique_ptr<Blas::Implementation> on_cuda(Device& device, Stream& stream);
/// \endcond

}  // namespace meshpost::blas
