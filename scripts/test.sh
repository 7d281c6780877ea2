#!/usr/bin/env bash
# Installs what is needed, builds in release mode, runs every test, and prints the count.
#
#   scripts/test.sh [--long]
#
#   --long  also the long forms of the tests that have one, and 10^5 nodes that are destroyed in their
#           own callbacks under the address sanitizer
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  "") ;;
  --long) export BATCHRPC_LONG_TESTS=1 ;;
  *) echo "usage: scripts/test.sh [--long]" >&2 && exit 2 ;;
esac
scripts/setup.sh ${BATCHRPC_LONG_TESTS:+--ci}  # clang has the sanitizer
if [ -n "${BATCHRPC_LONG_TESTS:-}" ]; then
  cmake --preset asan >/dev/null
  cmake --build build/asan --parallel "$(nproc)" --target test_node
  build/asan/bin/test_node 'a node may be destroyed in*'
fi
scripts/run_preset.sh release
