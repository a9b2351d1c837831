#!/usr/bin/env bash
# Runs all checks on a GPU machine, without network and in one call, as in a batch job. Later
# sections run even if an earlier one fails or takes too long.
#
# usage: tools/gpu_check.sh [SECTION...] [OPTIONS]
#   build test bench sanitize   sections to run, in the order given; unless named, the first three
#   --sanitizer 'PROGRAM ARGS'  what sanitize runs under compute-sanitizer, from build/cuda
#   --tests REGEX               only tests that match
#   --limit SECONDS             for each section, 300 unless given; a test gets 60
#
# Logs and bench.json go to $OUT, or to out/ if that is not set.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
export MESHPOST_OFFLINE=1 MESHPOST_PRESET=cuda
out=$(realpath -m "${OUT:-out}")
mkdir -p "$out"

usage() {
  sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

sections=()
program=()
tests=.
limit=300
while (($#)); do
  case $1 in
    build | test | sanitize | bench) sections+=("$1") ;;
    --sanitizer) read -ra program <<<"${2:?}" && shift ;;
    --tests) tests=${2:?} && shift ;;
    --limit) limit=${2:?} && shift ;;
    *) usage ;;
  esac
  shift
done
if ((${#sections[@]} == 0)); then sections=(build test bench); fi
if [[ " ${sections[*]} " == *" sanitize "* && ${#program[@]} == 0 ]]; then usage; fi

limited() { timeout --kill-after=10 "$limit" "$@"; }

run_section() {
  case $1 in
    build) limited ./run build cuda ;;
    test)
      limited ctest --test-dir build/cuda -L gpu -R "$tests" --timeout 60 --output-on-failure
      ;;
    bench) limited ./run bench --json "$out/bench.json" ;;
    sanitize)
      limited compute-sanitizer --error-exitcode 9 "build/cuda/${program[0]}" "${program[@]:1}"
      ;;
  esac
}

failed=0
summary=()
nvidia-smi -L
for section in "${sections[@]}"; do
  printf '\n=== %s\n' "$section"
  start=$SECONDS
  status=0
  run_section "$section" 2>&1 | tee "$out/gpu_$section.log" || status=$?
  case $status in
    0) result=pass ;;
    124 | 137) result="over $limit s" ;;
    *) result="FAIL ($status)" ;;
  esac
  if ((status)); then failed=1; fi
  summary+=("$(printf '%-9s %-12s %4d s' "$section" "$result" $((SECONDS - start)))")
done

printf '\n=== summary\n'
printf '%s\n' "${summary[@]}"
grep -h 'tests passed' "$out/gpu_test.log" 2>/dev/null || true
exit "$failed"
