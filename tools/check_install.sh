#!/usr/bin/env bash
# Installs the build of BUILD_DIR, then builds and runs tests/install against the installed copy
# alone.
#
# usage: tools/check_install.sh BUILD_DIR
set -euo pipefail
build=$(realpath "${1:?usage: tools/check_install.sh BUILD_DIR}")
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

cmake --install "$build" --prefix "$temporary/prefix" >"$temporary/install.log" || {
  cat "$temporary/install.log" >&2
  exit 1
}
if grep -rn --include='*.cmake' -e "$PWD" -e "$build" "$temporary/prefix"; then
  echo "check_install: the package names the source or build tree (INSTALL_INTERFACE?)" >&2
  exit 1
fi
cmake -S tests/install -B "$temporary/build" -G Ninja -D "meshpost_ROOT=$temporary/prefix"
cmake --build "$temporary/build"
MESHPOST_DEVICES=cpu:2 "$temporary/build/ring"
echo "check_install: ring, built against the installed package, ran on two CPU devices"
if compgen -G "$temporary/prefix/lib*/cmake/meshpost/meshpostMpiTargets.cmake" >/dev/null; then
  cmake -S tests/install/mpi -B "$temporary/build_mpi" -G Ninja -D "meshpost_ROOT=$temporary/prefix"
  cmake --build "$temporary/build_mpi"
  tests/mpi/mpirun.sh 2 "$temporary/build_mpi/ring" || [[ $? == 77 ]]
  echo "check_install: a ring over MPI, built against the component mpi, ran in two processes"
fi
# A dCUDA program runs on the kind of device that its compiler makes kernels for.
if grep -q '^MESHPOST_CUDA:BOOL=ON' "$build/CMakeCache.txt"; then
  echo "check_install: reduction and exchange were built for GPUs; they are not run here"
else
  MESHPOST_DEVICES=cpu:1 "$temporary/build/reduction"
  echo "check_install: reduction, a dCUDA program, ran on a CPU device"
  "$temporary/build/exchange"
  echo "check_install: exchange, a LibMP program, ran on a CPU device"
fi
