#!/usr/bin/env bash
# Counts the instructions of a call, client and server together, in a fixed workload within one process
# (benchmarks/instruction_benchmark.cpp; valgrind's callgrind). Other load on the machine does not change the counts.
#
#   scripts/instructions.sh [--base <revision>|none]
#
# Compares them with the base, by default that of scripts/base_revision.sh. A case that needs over 5 % more
# fails, unless CHANGELOG.md has a new line with "instructions a call". The last line is "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/.."

calls=20000
limit=105  # percent of the base
cases=(one window worker bytes object batch)

base=
if [ "${1:-}" = --base ] && [ $# = 2 ]; then
  base=$2
elif [ $# != 0 ]; then
  echo "usage: scripts/instructions.sh [--base <revision>|none]" >&2
  exit 2
fi
command -v valgrind >/dev/null || { echo "instructions: valgrind is missing; scripts/setup.sh --ci installs it" >&2 && exit 1; }

# Like the preset release, and at the same depth as build/release, so that ccache has most files.
build() {  # <source folder>
  local build=$1/build/instructions
  (cd "$1" && cmake --preset release -B build/instructions -DBATCHRPC_TORCH=OFF -DBATCHRPC_TESTS=OFF \
    -DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}" >/dev/null)
  cmake --build "$build" --parallel "$(nproc)" --target instruction_benchmark >"$build/build.log" ||
    { cat "$build/build.log" >&2 && return 1; }
}

count() {  # <source folder> <case>: instructions a call
  local all
  all=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=measured \
    "$1/build/instructions/bin/instruction_benchmark" "$2" "$calls" 2>&1 | sed -nE 's/^==[0-9]+== Collected : ([0-9]+).*/\1/p') || return 1
  [ "${all:-0}" -ge "$calls" ] || { echo "instructions: case $2 in $1 was not counted" >&2 && return 1; }
  echo $((all / calls))
}

build .

base=${base:-$(scripts/base_revision.sh)}
base=${base:-none}
there=
if [ "$base" = none ]; then
  echo "the base revision is unknown; nothing to compare with"
else
  there=build/instructions/base
  git worktree remove --force "$there" 2>/dev/null || rm -rf "$there"
  git worktree add --quiet --detach "$there" "$base"
  trap "git worktree remove --force $there" EXIT
  if [ ! -e "$there/benchmarks/instruction_benchmark.cpp" ]; then
    echo "the base, $(git rev-parse --short "$base"), has no such workload; nothing to compare with"
    there=
  else
    build "$there"
  fi
fi

excused=no
told=$([ -z "$there" ] || git diff "$base" -- CHANGELOG.md | grep -c '^+.*instructions a call' || true)
if [ "${told:-0}" -gt 0 ]; then excused=yes; fi
passed=0 failed=0
printf '%-8s %12s %12s\n' case "a call" "${there:+base}"
for case in "${cases[@]}"; do
  now=$(count . "$case") || exit 1
  before=
  if [ -n "$there" ]; then before=$(count "$there" "$case" 2>/dev/null || true); fi
  note=
  if [ -n "$before" ]; then note=$(awk "BEGIN {printf \"%+.1f %%\", 100 * $now / $before - 100}"); fi
  if [ -n "$before" ] && [ $((now * 100)) -gt $((before * limit)) ]; then
    if [ $excused = yes ]; then
      note+=" (stated in CHANGELOG.md)"
    else
      note+=" TOO MANY: fix it, or explain in CHANGELOG.md why there are more instructions a call"
      failed=$((failed + 1)) passed=$((passed - 1))
    fi
  fi
  passed=$((passed + 1))
  printf '%-8s %12s %12s  %s\n' "$case" "$now" "$before" "$note"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
