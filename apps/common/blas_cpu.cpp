// BLAS on CPU devices: OpenBLAS, called by the threads of a stream.
#include <cblas.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "bf16.hpp"
#include "blas.hpp"
#include "meshpost/base/error.hpp"
#include "team.hpp"

#if defined(__SANITIZE_THREAD__)
// OpenBLAS is not compiled for the thread sanitizer. The sanitizer sees its threads call memset,
// but does not see how they synchronize.
extern "C" char const* __tsan_default_suppressions() { return "race:libopenblas"; }
#endif

namespace meshpost::blas {
namespace {

struct Tile {
  u64 row = 0, rows = 0, column = 0, columns = 0;
};

// Tile `member` of m x n elements cut for `members`. Tiles are as square as their number allows,
// because each thread packs the rows of A and the columns of B that its tile needs.
Tile tile(u64 m, u64 n, u32 member, u32 members) {
  u32 down = 1;
  for (u32 d = 1; d <= members; ++d) {
    if (members % d != 0) continue;
    auto const edge = [&](u32 by) { return m / by + n / (members / by); };
    if (edge(d) < edge(down)) down = d;
  }
  u32 const across = members / down;
  u64 const i = member % down, j = member / down;
  u64 const row = m * i / down, column = n * j / across;
  return {row, m * (i + 1) / down - row, column, n * (j + 1) / across - column};
}

template <class T>
T const* at(ConstMatrix matrix, u64 row, u64 column) {
  return static_cast<T const*>(matrix.data) + row + column * matrix.stride;
}
template <class T>
T* at(Matrix matrix, u64 row, u64 column) {
  return static_cast<T*>(matrix.data) + row + column * matrix.stride;
}

// With only one column the stride is not used and may be anything, but OpenBLAS requires it to be
// >= 1.
blasint fit(u64 number) { return static_cast<blasint>(std::max<u64>(1, number)); }

struct Call {
  Type type;
  Shape shape;
  double alpha;
  ConstMatrix a, b;
  double beta;
  Matrix c;

  void operator()(Tile const& part) const {
    if (part.rows == 0 || part.columns == 0) return;
    auto const m = static_cast<blasint>(part.rows), n = static_cast<blasint>(part.columns),
               k = static_cast<blasint>(shape.k);
    auto const lda = fit(a.stride), ldb = fit(b.stride), ldc = fit(c.stride);
    if (type == Type::float64) {
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha,
                  at<double>(a, part.row, 0), lda, at<double>(b, 0, part.column), ldb, beta,
                  at<double>(c, part.row, part.column), ldc);
    } else if (type == Type::float32) {
      cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, static_cast<float>(alpha),
                  at<float>(a, part.row, 0), lda, at<float>(b, 0, part.column), ldb,
                  static_cast<float>(beta), at<float>(c, part.row, part.column), ldc);
    }
#ifdef MESHPOST_HAS_SBGEMM
    if (type == Type::bf16) {
      // cblas_sbgemm adds to float32, some columns at a time.
      constexpr u64 width = 256;
      thread_local std::vector<float> sums;
      sums.resize(part.rows * std::min(width, part.columns));
      for (u64 first = 0; first < part.columns; first += width) {
        u64 const columns = std::min(width, part.columns - first);
        cblas_sbgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, static_cast<blasint>(columns), k,
                     static_cast<float>(alpha), at<bfloat16>(a, part.row, 0), lda,
                     at<bfloat16>(b, 0, part.column + first), ldb, 0, sums.data(), m);
        for (u64 j = 0; j < columns; ++j) {
          auto* const out = at<Bf16>(c, part.row, part.column + first + j);
          for (u64 i = 0; i < part.rows; ++i) {
            float const old = beta == 0 ? 0.f : static_cast<float>(beta) * out[i];
            out[i] = Bf16(sums[j * part.rows + i] + old);
          }
        }
      }
    }
#endif
  }
};

template <class T, class Sum>
void add(u64 count, Sum a, T const* x, Sum b, T* y) {
  for (u64 i = 0; i < count; ++i) y[i] = T(a * static_cast<Sum>(x[i]) + b * static_cast<Sum>(y[i]));
}

// OpenBLAS would begin with a thread a core in each call.
void begin_with_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

class CpuBlas : public Blas::Implementation {
 public:
  CpuBlas(Stream& stream, u32 threads)
      : stream_(stream), team_(std::make_shared<Team>(std::max(1u, threads))) {
    begin_with_one_thread();
  }

  void gemm(Type type, Shape shape, double alpha, ConstMatrix a, ConstMatrix b, double beta,
            Matrix c) override {
    require("cpu", type);
    for (u64 const number : {shape.m, shape.n, shape.k, a.stride, b.stride, c.stride})
      if (number > static_cast<u64>(std::numeric_limits<blasint>::max()))
        throw Error(Kind::bad_argument, "multiply matrices on a CPU device",
                    "a side or stride is " + std::to_string(number) +
                        ", this OpenBLAS allows at most " +
                        std::to_string(std::numeric_limits<blasint>::max()),
                    "use smaller matrices");
    stream_.call([team = team_, call = Call{type, shape, alpha, a, b, beta, c}] {
      team->run([&](u32 member) { call(tile(call.shape.m, call.shape.n, member, team->size())); });
    });
  }

  void axpby(Type type, u64 count, double a, void const* x, double b, void* y) override {
    stream_.call([=, team = team_] {
      team->run([&](u32 member) {
        u64 const first = count * member / team->size();
        u64 const mine = count * (member + 1) / team->size() - first;
        if (type == Type::float64)
          add(mine, a, static_cast<double const*>(x) + first, b, static_cast<double*>(y) + first);
        else if (type == Type::bf16)
          add(mine, static_cast<float>(a), static_cast<Bf16 const*>(x) + first,
              static_cast<float>(b), static_cast<Bf16*>(y) + first);
        else
          add(mine, static_cast<float>(a), static_cast<float const*>(x) + first,
              static_cast<float>(b), static_cast<float*>(y) + first);
      });
    });
  }

 private:
  Stream& stream_;
  std::shared_ptr<Team> team_;
};

}  // namespace

void use_openblas_threads(u32 threads) {
  begin_with_one_thread();
  openblas_set_num_threads(static_cast<int>(std::max(1u, threads)));
}

std::unique_ptr<Blas::Implementation> on_cpu(Stream& stream, u32 threads) {
  return std::make_unique<CpuBlas>(stream, threads);
}

}  // namespace meshpost::blas
