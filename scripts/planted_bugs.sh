#!/usr/bin/env bash
# Checks that the random programs (tests/reliability/) find bugs. It plants the bugs of scripts/planted_bugs/ one
# after the other in a copy of the sources, and runs the programs until one fails. First it runs them
# without a bug; none may fail then.
#
#   scripts/planted_bugs.sh [--check] [--seeds N] [bug...]
#
# N: 10000 by default. --check only tests whether each patch still applies to the sources. Rewrite a patch that
# does not apply for the present code. The last line is "N found, M missed", or "N apply, M do not".
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=10000 check=false
bugs=()
while [ $# -gt 0 ]; do
  case $1 in
    --check) check=true && shift ;;
    --seeds) seeds=${2:?--seeds needs a number} && shift 2 ;;
    -*) echo "usage: scripts/planted_bugs.sh [--check] [--seeds N] [bug...]" >&2 && exit 2 ;;
    *) bugs+=("$1") && shift ;;
  esac
done
if [ ${#bugs[@]} = 0 ]; then
  for file in scripts/planted_bugs/*.patch; do bugs+=("$(basename "$file" .patch)"); done
fi

if $check; then
  applies=0 fails=0
  for bug in "${bugs[@]}"; do
    if git apply --check "scripts/planted_bugs/$bug.patch"; then
      applies=$((applies + 1))
    else
      fails=$((fails + 1))
      echo "$bug: the patch no longer applies"
    fi
  done
  echo "$applies apply, $fails do not"
  [ "$fails" = 0 ]
  exit
fi

# The copy keeps its build between runs, so unchanged files are not compiled again.
copy=build/planted patches=$PWD/scripts/planted_bugs
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z -co --exclude-standard | xargs -0 cp -p --parents -t "$copy"
cd "$copy"
# Restored files would be older than objects compiled with a bug, and would not be compiled again.
sed -n 's|^+++ b/||p' "$patches"/*.patch | sort -u | xargs touch
mkdir -p build
build=build/release log=$PWD/build/planted_bugs.log
cmake --preset release -DBATCHRPC_TORCH=OFF -DBATCHRPC_EXAMPLES=OFF -DBATCHRPC_BENCHMARKS=OFF >"$log" 2>&1 ||
  { cat "$log" && exit 1; }

try() {  # <bug>: builds and runs the programs
  cmake --build "$build" --parallel "$(nproc)" --target test_reliability >"$log" 2>&1 ||
    { tail -n 40 "$log" && echo "$1: does not compile" && exit 1; }
  status=0
  start=$SECONDS
  said=$(BATCHRPC_SEEDS=$seeds timeout 600 "$build/bin/test_reliability" 2>&1) || status=$?
}

try "without a bug"
[ "$status" = 0 ] || { echo "$said" | tail -n 40 && echo "the programs fail without a planted bug, with status $status" && exit 1; }
found=0 missed=0
for bug in "${bugs[@]}"; do
  patch -s -p1 <"$patches/$bug.patch"
  try "$bug"
  patch -s -R -p1 <"$patches/$bug.patch"
  seed=$(grep -oE 'seed [0-9]+' <<<"$said" | head -n 1 || true)
  if [ "$status" = 0 ]; then
    missed=$((missed + 1))
    echo "$bug: MISSED by all $seeds programs"
  else
    found=$((found + 1))
    echo "$bug: found by ${seed:-a program that exited with status $status}, in $((SECONDS - start)) s"
    grep -E -A 2 'seed [0-9]+' <<<"$said" | sed -n '2s/^ */    /p'
  fi
done
echo "$found found, $missed missed"
[ "$missed" = 0 ]
