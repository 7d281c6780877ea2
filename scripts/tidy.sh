#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) on what has changed in the core since the base (scripts/base_revision.sh): on source
# files, and on headers through a source file that includes them. A finding is an error.
#
#   scripts/tidy.sh [--deep] [--seconds N] [FILE...]
#
#   --deep       look at each file by itself, also with clang's analyzer, which takes 25 s of a processor; without it,
#                at twenty files at a time, as the unity build of the presets compiles them, in the same time
#   --seconds N  begin with no file after N seconds (default: 240); what changed last comes first, and how many
#                were left out is said
#   FILE         look at these instead
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=240 unity=ON more_checks=-bugprone-suspicious-include  # of .cpp files
while [ $# -gt 0 ]; do
  case $1 in
    --deep) unity=OFF more_checks='clang-analyzer-*,misc-unused-*' && shift ;;
    --seconds) seconds=${2:?--seconds needs a number} && shift 2 ;;
    -*) echo "usage: scripts/tidy.sh [--deep] [--seconds N] [FILE...]" >&2 && exit 2 ;;
    *) break ;;
  esac
done

newest_first() {  # the changed files of the core; what includes LibTorch is not compiled by clang 14
  local base
  base=$(scripts/base_revision.sh)
  { git diff --name-only HEAD && git log --format= --name-only "${base:+$base..}HEAD"; } | awk '!seen[$0]++' |
    grep -xFf <(scripts/base_revision.sh --changed) |
    grep -E '^(src/.*\.(cpp|hpp)|include/.*\.hpp)$' | grep -vE '/torch/|/torch\.hpp$'
}

# A source file that includes a header: that of the same name, else the shortest; nothing where there is none.
source_of() {  # <file>
  local name=${1#src/} stem
  name=${name#include/}
  stem=src/${name#batchrpc/} stem=${stem%.?pp}.cpp
  if [ -e "$stem" ]; then
    echo "$stem"
  else
    { git grep -lF "#include \"$name\"" -- 'src/*.cpp' ':!src/torch' || true; } | xargs -r ls -S | tail -n 1
  fi
}

files=("$@")
if [ ${#files[@]} = 0 ]; then mapfile -t files < <(newest_first || true); fi
if [ ${#files[@]} = 0 ]; then echo "tidy: no file of the core has changed" && echo "0 passed, 0 failed" && exit; fi

build=build/tidy-unity-$unity
cmake --preset asan -B "$build" -DCMAKE_UNITY_BUILD=$unity -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
# Nothing is compiled. By ninja, the page would have the libraries built first.
cmake --build "$build" --target generated/wire/frame.capnp.h >/dev/null
mkdir -p "$build/generated/status"
cmake -DINPUT=src/status/page.html -DOUTPUT="$build/generated/status/page_html.cpp" -P cmake/BatchrpcEmbed.cmake

# What is compiled with a source file: of a unity build, the file that includes it.
compiled_with() {  # <source file>
  grep -lF "\"$PWD/$1\"" "$build"/src/CMakeFiles/*/Unity/*.cxx 2>/dev/null || echo "$1"
}

mapfile -t units < <(for file in "${files[@]}"; do source_of "$file"; done | awk '!seen[$0]++' |
  while read -r source; do compiled_with "$source"; done | awk '!seen[$0]++')
# A unit of a unity build includes its source files, which are headers to clang-tidy.
export build began=$EPOCHSECONDS seconds more_checks filter='(include/batchrpc|src)/.*\.[ch]pp$'
# shellcheck disable=SC2016
printf '%s\0' "${units[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c '
  if [ $((EPOCHSECONDS - began)) -ge "$seconds" ]; then echo "LEFT OUT $1" && exit; fi
  if said=$(clang-tidy-14 -p "$build" --quiet --checks="$more_checks" --header-filter="$filter" \
    --warnings-as-errors="*" "$1" 2>/dev/null); then
    echo "GOOD $1"
  else
    printf "%s\nBAD %s\n" "$said" "$1"
  fi' tidy >"$build/findings"
count() { grep -c "^$1 " "$build/findings" || true; }
grep -vE '^(GOOD|BAD) ' "$build/findings" || true
left=$(count LEFT) bad=$(count BAD)
[ "$left" = 0 ] || echo "tidy: $left of ${#units[@]} are not checked in this run, since $seconds s have passed"
[ "$bad" = 0 ] || echo "tidy: fix the findings above, or add NOLINT(check) with a reason"
echo "$(count GOOD) passed, $bad failed"
[ "$bad" = 0 ]
