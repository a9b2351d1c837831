#!/bin/sh
# Runs all litmus tests, or those given, with herd7, and compares its verdicts with the expected
# ones in the files. README.md says more.
set -u
here=$(cd "$(dirname "$0")" && pwd)
herd=${MESHPOST_HERD:-$(command -v herd7)}
if [ -z "$herd" ]; then
  echo "skipped: herd7 is not installed; tests/litmus/README.md says where to get it"
  exit 77
fi
[ $# -ne 0 ] || set -- "$here"/*/*.litmus

failed=0
for file; do
  case $file in
    */cpu/*) set_model='-model rc11.cat' ;;
    *) set_model="-bell $here/ptx.bell -model $here/ptx.cat" ;;
  esac
  expected=$(sed -n 's/^(\* Expected: \([A-Za-z]*\)\..*/\1/p' "$file")
  # shellcheck disable=SC2086
  output=$("$herd" $set_model "$file" 2>&1)
  verdict=$(echo "$output" | sed -n 's/^Observation [^ ]* \([A-Za-z]*\) .*/\1/p')
  name=${file#"$here"/}
  if [ -n "$expected" ] && [ "$verdict" = "$expected" ]; then
    printf '%-60s %s\n' "$name" "$verdict"
  else
    printf '%-60s %s, expected %s\n%s\n' "$name" "${verdict:-no verdict}" "${expected:-nothing}" \
      "$output"
    failed=$((failed + 1))
  fi
done
echo "$# tests, $failed with another verdict than expected"
[ "$failed" -eq 0 ]
