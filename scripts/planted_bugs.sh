#!/usr/bin/env bash
# Checks that tests find bugs. It plants the bugs of scripts/planted_bugs/ one after the other in a copy of the
# sources, and runs the tests that should find them. First it runs these tests without a bug; none may fail then.
#
#   scripts/planted_bugs.sh [--check] [--short] [--seeds N] [bug...]
#
#   --check  only tests whether each patch still applies to the sources
#   --short  plants only the bugs that the short run of CI must find
#   N        random programs for a bug (default: 10000)
#
# A patch with the line "Short run: <preset> <layer>" is a bug that the short run of CI finds by the tests of that
# layer; they run here as they do there. All others must be found by the random programs (tests/reliability/).
# Rewrite a patch that does not apply for the present code. The last line is "N found, M missed", or "N apply, M do
# not".
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=10000 check=false short=false
bugs=()
while [ $# -gt 0 ]; do
  case $1 in
    --check) check=true && shift ;;
    --short) short=true && shift ;;
    --seeds) seeds=${2:?--seeds needs a number} && shift 2 ;;
    -*) echo "usage: scripts/planted_bugs.sh [--check] [--short] [--seeds N] [bug...]" >&2 && exit 2 ;;
    *) bugs+=("$1") && shift ;;
  esac
done
patches=$PWD/scripts/planted_bugs

short_run_of() {  # <bug>: "<preset> <layer>", or nothing
  sed -n 's/^Short run: //p' "$patches/$1.patch"
}

if [ ${#bugs[@]} = 0 ]; then
  for file in "$patches"/*.patch; do
    bug=$(basename "$file" .patch)
    if ! $short || [ -n "$(short_run_of "$bug")" ]; then bugs+=("$bug"); fi
  done
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

# The copy keeps its builds between runs, so unchanged files are not compiled again. Their options are those of CI,
# whose objects ccache has.
copy=build/planted
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z -co --exclude-standard | xargs -0 cp -p --parents -t "$copy"
cd "$copy"
# Restored files would be older than objects compiled with a bug, and would not be compiled again.
sed -n 's|^+++ b/||p' "$patches"/*.patch | sort -u | xargs touch
mkdir -p build
log=$PWD/build/planted_bugs.log

try() {  # <bug> <preset> <layer> [seeds]: builds and runs the tests of the layer
  local build=build/$2
  if [ ! -e "$build/build.ninja" ]; then
    cmake --preset "$2" -DBATCHRPC_WERROR="${BATCHRPC_WERROR:-ON}" >"$log" 2>&1 || { cat "$log" && exit 1; }
  fi
  cmake --build "$build" --parallel "$(nproc)" --target "tests_of_$3" >"$log" 2>&1 ||
    { tail -n 40 "$log" && echo "$1: does not compile" && exit 1; }
  status=0 start=$SECONDS
  said=$(env ${4:+"BATCHRPC_SEEDS=$4"} scripts/run_tests.py "$build" --layers "$3" --timeout 600 2>&1) || status=$?
}

found=0 missed=0 tried=
for bug in "${bugs[@]}"; do
  many=
  read -r preset layer <<<"$(short_run_of "$bug")" || true
  if [ -z "$preset" ]; then preset=release layer=reliability many=$seeds; fi
  if ! grep -qxF "$preset $layer $many" <<<"$tried"; then
    try "without a bug" "$preset" "$layer" "$many"
    [ "$status" = 0 ] || { echo "$said" | tail -n 40 && echo "the tests of $layer fail without a bug" && exit 1; }
    tried+="$preset $layer $many"$'\n'
  fi
  patch -s -p1 <"$patches/$bug.patch"
  try "$bug" "$preset" "$layer" "$many"
  patch -s -R -p1 <"$patches/$bug.patch"
  if [ "$status" = 0 ]; then
    missed=$((missed + 1))
    echo "$bug: MISSED by the tests of $layer${many:+, by $many programs}"
    continue
  fi
  found=$((found + 1))
  seed=$(grep -oE 'seed [0-9]+' <<<"$said" | head -n 1 || true)
  mapfile -t failed < <(sed -n 's/^FAILED: //p' <<<"$said")
  echo "$bug: found in $((SECONDS - start)) s by ${failed[0]:-a program that exited with status $status}${seed:+, $seed}" \
    "$([ ${#failed[@]} -lt 2 ] || echo "and $((${#failed[@]} - 1)) more")"
  if [ "$layer" = reliability ]; then grep -E -A 2 'seed [0-9]+' <<<"$said" | sed -n '2s/^ */    /p'; fi
done
echo "$found found, $missed missed"
[ "$missed" = 0 ]
