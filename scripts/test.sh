#!/usr/bin/env bash
# Installs what is needed, builds in release mode, runs the tests, and prints the count.
#
#   scripts/test.sh [--long] [LAYER...]
#
#   LAYER   folders of tests/, for example torch examples; without one, every test
#   --long  also the long forms of the tests that have one, and 10^5 nodes that are destroyed in their
#           own callbacks under the address sanitizer
set -euo pipefail
cd "$(dirname "$0")/.."

layers=()
for argument in "$@"; do
  case $argument in
    --long) export BATCHRPC_LONG_TESTS=1 ;;
    -*) echo "usage: scripts/test.sh [--long] [LAYER...]" >&2 && exit 2 ;;
    *) layers+=("$argument") ;;
  esac
done
scripts/setup.sh ${BATCHRPC_LONG_TESTS:+--ci}  # clang has the sanitizer
if [ -n "${BATCHRPC_LONG_TESTS:-}" ]; then
  cmake --preset asan >/dev/null
  cmake --build build/asan --parallel "$(nproc)" --target test_node
  build/asan/bin/test_node 'a node may be destroyed in*'
fi
scripts/run_preset.sh release "${layers[@]}"
