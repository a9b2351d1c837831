#!/usr/bin/env bash
# Checks that C++ and Python sources are formatted and free of lint. --fix repairs them.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH # use the pinned versions, not the system's
for tool in clang-format ruff; do
  command -v "$tool" >/dev/null && continue
  echo "check_format: no $tool; ./run setup installs it from tools/requirements-lint.txt" >&2
  exit 2
done

mapfile -t sources < <(find include src tests bench apps examples python -type f \
  -regex '.*\.\(hpp\|cpp\|h\|cu\|cuh\)' 2>/dev/null)

if [[ ${1:-} == --fix ]]; then
  clang-format -i "${sources[@]}"
  ruff check --quiet --fix . >/dev/null || true # the check below reports the rest
  ruff format --quiet .
fi

failed=0
clang-format --dry-run -Werror "${sources[@]}" || failed=1
ruff check --quiet . || failed=1
ruff format --quiet --check . || failed=1
((failed == 0)) || echo "to repair most of it: ./run format" >&2
exit "$failed"
