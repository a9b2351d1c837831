#!/usr/bin/env bash
# Checks --n max: that size runs, and a size 2 % larger is refused with needed and free bytes. Also
# in two processes, which share the memory of the host.
#
# usage: largest.sh GEMM LAUNCH
set -euo pipefail
gemm=$1 launch=$2
options=(--memory 1M --repeat 1 --progress never)

for processes in 1 2; do
  run=("$gemm" --devices "cpu:$((2 / processes))" "${options[@]}")
  ((processes == 1)) || run=("$launch" --no-label -n "$processes" "${run[@]}")
  n=$("${run[@]}" --n max | sed -n 's/^largest N *\([0-9]*\) .*/\1/p')
  [[ $n ]] || { echo "no largest N in $processes processes" >&2 && exit 1; }
  # In floats, 3.5 to 4 N^2 with the buffers, of 2^18.
  ((n >= 240 && n <= 274)) || { echo "N is $n in $processes processes" >&2 && exit 1; }
  if said=$("${run[@]}" --n $((n + (n + 49) / 50)) 2>&1); then
    echo "2 % more than $n ran, too" >&2
    exit 1
  fi
  [[ $said =~ needs\ ([0-9]+)\ bytes,\ but\ ([0-9]+)\ bytes\ are\ free,\ of\ which\ 1048576 ]] &&
    ((BASH_REMATCH[1] > 1048576)) && continue
  echo "wrong message: $said" >&2
  exit 1
done
echo "largest N: $n"
