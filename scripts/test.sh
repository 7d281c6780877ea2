#!/usr/bin/env bash
# Installs what is needed, builds in release mode, runs every test, and prints the count.
#
#   scripts/test.sh [--long]
#
#   --long  also the long forms of the tests that have one
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  "") ;;
  --long) export BATCHRPC_LONG_TESTS=1 ;;
  *) echo "usage: scripts/test.sh [--long]" >&2 && exit 2 ;;
esac
scripts/setup.sh
scripts/run_preset.sh release
