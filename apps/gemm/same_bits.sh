#!/usr/bin/env bash
# Checks that the product is bitwise equal for any number of processes, also if they share no
# memory.
#
# usage: same_bits.sh GEMM LAUNCH [nodes]
set -euo pipefail
gemm=$1 launch=$2 nodes=${3:-}
options=(--seed 5 --threads 1 --size "301,200,333" --panel 32 --repeat 2 --progress never)

bits() { # of a command's output
  "$@" "${options[@]}" --type "$type" | sed -n 's/^fingerprint of C *//p'
}
# shellcheck disable=SC2016 # the processes of the job expand it
apart='MESHPOST_NODE=$MESHPOST_PROCESS exec "$0" "$@"'

for type in double float; do
  expected=$(bits "$gemm" --devices cpu:4)
  [[ $expected ]] || { echo "one process told no fingerprint" >&2 && exit 1; }
  for processes in 2 4; do
    run=("$launch" --no-label -n "$processes")
    [[ $nodes ]] && run+=(sh -c "$apart")
    found=$(bits "${run[@]}" "$gemm" --devices "cpu:$((4 / processes))")
    [[ $found == "$expected" ]] && continue
    echo "$type: $found in $processes processes, $expected in one" >&2
    exit 1
  done
done
echo "the same bits"
