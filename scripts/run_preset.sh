#!/usr/bin/env bash
# Configures and builds a preset, runs its tests, and prints "N passed, M failed" at the end. Tests that
# cannot run here are neither: before that, there is a line "left out: <test> (<what is missing>)" for each.
# A test of processes that fails is run once more, and named.
#
#   scripts/run_preset.sh <preset> [-D<variable>=<value>...] [--target <target>]... [ctest arguments]
#
# BATCHRPC_WERROR=ON makes warnings errors.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: scripts/run_preset.sh <preset> [-D...] [--target <target>]... [ctest arguments]}
shift
variables=(-DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}")
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    -D?*) variables+=("$1") && shift ;;
    --target) targets+=(--target "$2") && shift 2 ;;
    *) break ;;
  esac
done

# g++ 12's thread sanitizer does not start where the kernel spreads addresses widely.
if [ "$preset" = tsan ] && [ -z "${BATCHRPC_FIXED_ADDRESSES:-}" ] && setarch -R true 2>/dev/null; then
  BATCHRPC_FIXED_ADDRESSES=1 exec setarch -R scripts/run_preset.sh "$preset" "${variables[@]}" "${targets[@]}" "$@"
fi

build=build/$preset
cmake --preset "$preset" "${variables[@]}" >/dev/null  # what is wrong goes to stderr
cmake --build "$build" --parallel "$(nproc)" "${targets[@]}"

log=$build/ctest.log
ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure "$@" | tee "$log" |
  grep -vE '^ +Start +[0-9]+: ' || true
counts=$(sed -nE 's/^.*tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$log")
read -r failed all <<<"${counts:-1 1}"  # no counts: ctest itself failed, or there were no tests
left_out=$(awk '  # the texts of WARN, which Catch2 breaks into lines
  sub(/^[0-9]+\/[0-9]+ Test: /, "") {test = $0}
  sub(/^  left out: /, "") {why = $0; next}
  why != "" && /^  /   {why = why substr($0, 2); next}
  why != ""            {print "left out: " test " (" why ")"; why = ""}
  ' "$build/Testing/Temporary/LastTest.log" || true)
# Those that start processes and measure real time share the machine with whatever else runs on it: one
# that fails is run once more, alone, and named.
if [ "$failed" -gt 0 ] && [ -n "$counts" ]; then
  again=$build/ctest-again.log
  ctest --test-dir "$build" --rerun-failed --tests-regex '^(process|examples)/' --output-on-failure >"$again" || true
  while read -r test; do
    echo "passed only when it was run again: $test"
    failed=$((failed - 1))
  done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^ .]) \.+ +Passed .*$/\1/p' "$again")
fi
if [ -n "$left_out" ]; then
  echo "$left_out"
  echo "(scripts/setup.sh --ci installs what they need, but for CUDA)"
fi
skipped=$(grep -c '^left out: ' <<<"$left_out" || true)
echo "$((all - failed - skipped)) passed, $failed failed"
[ "$failed" = 0 ]
