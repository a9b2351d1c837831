// Conjugate gradients by PETSc, a process a core: beside apps/cg. Prints a line of JSON.
//
//     mpirun -n 2 petsc 64 100 5    27-point Laplacian of 64^3, 100 iterations, 5 timed runs
//
// tools/compare_petsc.py compiles and starts it.
#include <petscksp.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using u64 = std::uint64_t;

// The b of apps/cg (common/random.hpp, sparse/random.hpp).
u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
double element(u64 row) { return static_cast<double>((mix(mix(1) + row) >> 11) + 1) * 0x1p-53; }

// x varies fastest; beyond the boundary all is 0.
PetscErrorCode fill(Mat matrix, Vec b, PetscInt side) {
  PetscFunctionBeginUser;
  PetscInt first = 0, last = 0;
  PetscCall(MatGetOwnershipRange(matrix, &first, &last));
  for (PetscInt row = first; row < last; ++row) {
    PetscInt const x = row % side, y = row / side % side, z = row / side / side;
    PetscInt columns[27], count = 0;
    PetscScalar values[27];
    for (PetscInt k = z - (z > 0); k <= z + (z + 1 < side); ++k)
      for (PetscInt j = y - (y > 0); j <= y + (y + 1 < side); ++j)
        for (PetscInt i = x - (x > 0); i <= x + (x + 1 < side); ++i) {
          columns[count] = (k * side + j) * side + i;
          values[count] = columns[count] == row ? 26 : -1;
          ++count;
        }
    PetscCall(MatSetValues(matrix, 1, &row, count, columns, values, INSERT_VALUES));
    PetscCall(VecSetValue(b, row, element(static_cast<u64>(row)), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscFunctionReturn(static_cast<PetscErrorCode>(0));
}

PetscErrorCode measure(PetscInt side, PetscInt iterations, int repetitions) {
  PetscFunctionBeginUser;
  PetscInt const n = side * side * side;
  Mat matrix = nullptr;
  Vec x = nullptr, b = nullptr;
  KSP solver = nullptr;
  PC none = nullptr;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 27, nullptr, 27,
                         nullptr, &matrix));
  PetscCall(MatCreateVecs(matrix, &x, &b));
  PetscCall(fill(matrix, b, side));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
  PetscCall(KSPSetType(solver, KSPCG));
  PetscCall(KSPGetPC(solver, &none));
  PetscCall(PCSetType(none, PCNONE));
  // The natural norm is r'r, which the method needs anyway: the least work that PETSc can do.
  PetscCall(KSPSetNormType(solver, KSP_NORM_NATURAL));
  PetscCall(KSPSetTolerances(solver, 1e-300, 1e-300, 1e300, iterations));
  PetscCall(KSPSetOperators(solver, matrix, matrix));
  PetscCall(KSPSetFromOptions(solver));
  PetscCall(KSPSetUp(solver));
  std::vector<double> seconds;
  for (int k = 0; k <= repetitions; ++k) {  // the first one does not count
    PetscCall(VecSet(x, 0));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    double const begin = MPI_Wtime();
    PetscCall(KSPSolve(solver, b, x));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    if (k > 0) seconds.push_back(MPI_Wtime() - begin);
  }
  PetscInt done = 0;
  PetscReal left = 0, whole = 0;
  PetscCall(KSPGetIterationNumber(solver, &done));
  PetscCall(KSPGetResidualNorm(solver, &left));
  PetscCall(VecNorm(b, NORM_2, &whole));
  PetscMPIInt process = 0;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &process));
  if (process == 0) {
    std::printf(
        "{\"version\": \"%d.%d.%d\", \"iterations\": %d, \"residual\": %.17g, \"seconds\": [",
        PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, static_cast<int>(done),
        left / whole);
    for (std::size_t k = 0; k < seconds.size(); ++k)
      std::printf("%s%.9g", k > 0 ? ", " : "", seconds[k]);
    std::printf("]}\n");
  }
  PetscCall(KSPDestroy(&solver));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&matrix));
  PetscFunctionReturn(static_cast<PetscErrorCode>(0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "petsc: give the side of the grid, iterations and repetitions\n");
    return 2;
  }
  PetscCall(PetscInitialize(&argc, &argv, nullptr, nullptr));
  PetscCall(measure(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])));
  PetscCall(PetscFinalize());
}
