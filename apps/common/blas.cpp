#include "blas.hpp"

#include "meshpost/base/error.hpp"

namespace meshpost::blas {

std::string_view name(Type type) {
  switch (type) {
    case Type::float64: return "double";
    case Type::float32: return "float";
    case Type::tf32: return "tf32";
    case Type::bf16: return "bf16";
  }
  return "?";
}

Type parse_type(std::string_view text) {
  for (auto const type : {Type::float64, Type::float32, Type::tf32, Type::bf16})
    if (name(type) == text) return type;
  throw Error(Kind::bad_argument, "choose the type of numbers",
              "there is no type '" + std::string(text) + "'",
              "use one of double, float, tf32, bf16");
}

Bytes size_of(Type type) {
  switch (type) {
    case Type::float64: return Bytes{8};
    case Type::bf16: return Bytes{2};
    default: return Bytes{4};
  }
}

double unit_roundoff(Type type) {
  switch (type) {
    case Type::float64: return 0x1p-53;
    case Type::float32: return 0x1p-24;
    case Type::tf32: return 0x1p-11;
    case Type::bf16: return 0x1p-9;
  }
  return 1;
}

void require(std::string_view device_kind, Type type) {
  auto const what = "multiply matrices of " + std::string(name(type)) + " on " +
                    std::string(device_kind) + " devices";
  if (device_kind == "cuda") {
#ifndef MESHPOST_HAS_CUBLAS
    throw Error(Kind::bad_environment, what, "this program was built without cuBLAS",
                "build it with the preset cuda, where cuBLAS is installed");
#endif
    return;
  }
  if (device_kind != "cpu")
    throw Error(Kind::bad_environment, what, "there is no BLAS for them", "use cpu or cuda");
  if (type == Type::tf32)
    throw Error(Kind::bad_environment, what, "only GPUs have this type",
                "use --type float or --devices cuda");
#ifndef MESHPOST_HAS_SBGEMM
  if (type == Type::bf16)
    throw Error(Kind::bad_environment, what, "this OpenBLAS was built without cblas_sbgemm",
                "use --type float, --devices cuda, or an OpenBLAS built with BUILD_BFLOAT16=1");
#endif
}

Blas::Blas(std::shared_ptr<Device> device, Stream& stream, u32 threads) {
  if (device->kind() == "cpu") {
    implementation_ = on_cpu(stream, threads);
    return;
  }
  require(device->kind(), Type::float32);
#ifdef MESHPOST_HAS_CUBLAS
  implementation_ = on_cuda(*device, stream);
#endif
}
Blas::~Blas() = default;
Blas::Blas(Blas&&) noexcept = default;

void Blas::gemm(Type type, Shape shape, double alpha, ConstMatrix a, ConstMatrix b, double beta,
                Matrix c) {
  auto const refuse = [](char const* matrix, u64 stride, u64 rows) {
    if (stride < rows)
      throw Error(Kind::bad_argument, "multiply matrices",
                  std::string("the stride of ") + matrix + " is " + std::to_string(stride) +
                      ", its columns have " + std::to_string(rows) + " elements",
                  "use a stride of at least the number of rows");
  };
  refuse("A", a.stride, shape.m);
  refuse("B", b.stride, shape.k);
  refuse("C", c.stride, shape.m);
  if (shape.m != 0 && shape.n != 0) implementation_->gemm(type, shape, alpha, a, b, beta, c);
}

void Blas::axpby(Type type, u64 count, double a, void const* x, double b, void* y) {
  if (count != 0) implementation_->axpby(type, count, a, x, b, y);
}

}  // namespace meshpost::blas
