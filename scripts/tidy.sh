#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) on the core's source files that have changed since the base
# (scripts/base_revision.sh). A finding is an error.
#
#   scripts/tidy.sh [--most N] [FILE...]
#
#   --most N  check at most N of the changed files, chosen by the commit (default: 40), and report how many are
#             left out
#   FILE      check these files instead
set -euo pipefail
cd "$(dirname "$0")/.."

most=40
if [ "${1:-}" = --most ]; then most=${2:?--most needs a number} && shift 2; fi
files=("$@")
if [ ${#files[@]} = 0 ]; then
  # clang 14 does not compile files that include LibTorch.
  mapfile -t files < <(scripts/base_revision.sh --changed | grep -E '^src/.*\.cpp$' | grep -v '^src/torch/' |
    shuf --random-source=<(yes "$(git rev-parse HEAD)"))
fi
if [ ${#files[@]} -gt "$most" ]; then
  echo "tidy: $((${#files[@]} - most)) of ${#files[@]} changed files are not checked in this run"
  files=("${files[@]:0:most}")
fi
if [ ${#files[@]} = 0 ]; then echo "tidy: no source file of the core has changed" && echo "0 passed, 0 failed" && exit; fi

# Each file is compiled by itself here, without precompiled headers.
build=build/tidy
cmake --preset asan -B "$build" -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
cmake --build "$build" --target generated/wire/frame.capnp.h >/dev/null
failed=0
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$(nproc)" clang-tidy-14 -p "$build" --quiet --warnings-as-errors='*' 2>/dev/null || failed=1
[ "$failed" = 0 ] || echo "tidy: fix the findings above, or add NOLINT(check) with a reason"
echo "$((${#files[@]} * (1 - failed))) passed, $failed failed"
[ "$failed" = 0 ]
