#!/usr/bin/env bash
# Runs clang-tidy on the library's sources, with the compile commands of BUILD_DIR. That must be a
# build without CUDA, because clang does not know nvcc's options. Sources that are compiled together
# are checked together.
#
# In public headers it also runs bugprone-easily-swappable-parameters, over one unit that includes
# them all. Not in compat/, which has the interfaces of others, nor in code for GPUs alone.
#
# usage: tools/check_tidy.sh BUILD_DIR [FILE_PATTERN]     as in: tools/check_tidy.sh build/cpu rma/run.cpp
set -euo pipefail
build=$(realpath "${1:?usage: tools/check_tidy.sh BUILD_DIR [FILE_PATTERN]}")
pattern=${2:-}
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH # use the pinned version, not the system's

commands=$build/compile_commands.json
[[ -f $commands ]] || {
  echo "check_tidy: no $commands; configure with CMAKE_EXPORT_COMPILE_COMMANDS=ON" >&2
  exit 2
}
# Inputs of the compiler: sources, or files that include several of them.
mapfile -t given < <(sed -n 's|^ *"file": "\(.*\)",\?$|\1|p' "$commands" | sort -u)
jobs=() # pairs: checks that don't hold there, unit
count=0
for unit in "${given[@]}"; do
  case $unit in
    */cuda/*) continue ;;
    "$PWD"/src/*) inside=("$unit") ;;
    "$build"/CMakeFiles/*/Unity/*) mapfile -t inside < <(sed -n "s|^#include \"\($PWD/src/.*\)\"\$|\1|p" "$unit") ;;
    *) continue ;;
  esac
  # Not by a pipe: grep ends at the first match, and then the error of printf would count.
  grep -qe "$pattern" < <(printf '%s\n' "${inside[@]#"$PWD/"}") || continue
  # Files that include sources need not include what they use. GCC finds shadowed names; clang would
  # compare with names of other sources. A unit of a folder uses the checks of that folder.
  off=-bugprone-suspicious-include,-clang-diagnostic-shadow
  own=$(dirname "${inside[0]}")/.clang-tidy
  if [[ -f $own ]]; then off+=,$(sed -n "s/^Checks: '\(.*\)'\$/\1/p" "$own"); fi
  jobs+=("--checks=$off" "$unit")
  count=$((count + ${#inside[@]}))
done
mapfile -t headers < <(find include/meshpost -name '*.hpp' -not -path '*/compat/*' -not -path '*/cuda/*' | sort)
if grep -qe "$pattern" < <(printf '%s\n' "${headers[@]}"); then
  # clang-tidy takes the options of a unit beside it. MPI may be missing.
  unit=$build/CMakeFiles/meshpost.dir/public_headers.cpp
  for header in "${headers[@]#include/}"; do
    if [[ $header == */mpi.hpp ]]; then printf '#if __has_include(<mpi.h>)\n#include "%s"\n#endif\n' "$header"
    else printf '#include "%s"\n' "$header"; fi
  done >"$unit"
  jobs+=("--checks=-*,bugprone-easily-swappable-parameters" "$unit")
  count=$((count + ${#headers[@]}))
fi
((${#jobs[@]})) || {
  echo "check_tidy: $commands names no source under src/, and include/ no header, that matches '$pattern'" >&2
  exit 2
}
echo "clang-tidy: $count files in $((${#jobs[@]} / 2)) units"
printf '%s\0' "${jobs[@]}" |
  xargs -0 -n 2 -P "$(nproc)" clang-tidy -p "$build" --quiet \
    --header-filter="^$PWD/(include|src)/" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-shadow \
    --extra-arg=-Wno-unused-command-line-argument \
    2> >(grep -v ' generated\.$' >&2) # the number of suppressed warnings in headers of others
