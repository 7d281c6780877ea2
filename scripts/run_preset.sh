#!/usr/bin/env bash
# Configures and builds a preset, and runs its tests (scripts/run_tests.py, whose last line is
# "N passed, M failed").
#
#   scripts/run_preset.sh <preset> [-D<variable>=<value>...] [--filter <layer>=<pattern>]... [layer...]
#
#   layer     folders of tests/: only their tests are built and run; without one, everything is
#   --filter  see scripts/run_tests.py
#
# BATCHRPC_WERROR=ON makes warnings errors.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: scripts/run_preset.sh <preset> [-D...] [--filter LAYER=PATTERN]... [layer...]}
shift
variables=(-DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}")
filters=() targets=() layers=()
while [ $# -gt 0 ]; do
  case $1 in
    -D?*) variables+=("$1") && shift ;;
    --filter) filters+=(--filter "$2") && shift 2 ;;
    *) layers+=("$1") && shift ;;
  esac
done

# g++ 12's thread sanitizer does not start where the kernel spreads addresses widely.
as_given=()
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then as_given=(setarch -R); fi

build=build/$preset
cmake --preset "$preset" "${variables[@]}" >/dev/null  # errors go to stderr
for layer in "${layers[@]}"; do targets+=(--target "tests_of_$layer"); done
cmake --build "$build" --parallel "$(nproc)" "${targets[@]}"
only=$(IFS=, && echo "${layers[*]}")
"${as_given[@]}" scripts/run_tests.py "$build" ${only:+--layers "$only"} "${filters[@]}"
