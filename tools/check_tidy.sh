#!/usr/bin/env bash
# clang-tidy over the library's sources, by the compile commands of BUILD_DIR: a build without CUDA,
# since clang does not take nvcc's options.
#
# usage: tools/check_tidy.sh BUILD_DIR [FILE_PATTERN]
set -euo pipefail
build=$(realpath "${1:?usage: tools/check_tidy.sh BUILD_DIR [FILE_PATTERN]}")
pattern=${2:-}
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH # the pinned version decides, not the system's

commands=$build/compile_commands.json
[[ -f $commands ]] || {
  echo "check_tidy: no $commands; configure with CMAKE_EXPORT_COMPILE_COMMANDS=ON" >&2
  exit 2
}
mapfile -t sources < <(sed -n "s|^ *\"file\": \"\($PWD/src/.*$pattern.*\)\",\?$|\1|p" "$commands" |
  grep -v /cuda/ | sort -u)
((${#sources[@]})) || {
  echo "check_tidy: $commands names no source under src/ that matches '$pattern'" >&2
  exit 2
}
echo "clang-tidy: ${#sources[@]} files"
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet \
    --header-filter="^$PWD/(include|src)/" --extra-arg=-Wno-unknown-warning-option \
    2> >(grep -v ' generated\.$' >&2) # how many warnings it suppressed in others' headers
