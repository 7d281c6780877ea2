#!/usr/bin/env bash
# Checks that our shared libraries define no symbols of their own outside the namespace batchrpc.
#
#   scripts/check_symbols.sh <libbatchrpc.so>...
#
# Template instances of the libraries that we use are allowed (Asio marks its own as visible); they are weak.
set -euo pipefail

[ $# -gt 0 ] || { echo "usage: scripts/check_symbols.sh <libbatchrpc.so>..." >&2 && exit 2; }
allowed='(batchrpc|std|__gnu_cxx|asio|fmt|spdlog|capnp|kj|at|c10|caffe2|torch)::'
prefix='(typeinfo (name )?for |vtable for |VTT for |guard variable for |non-virtual thunk to )?'
linker='(__bss_start|_edata|_end|_init|_fini)$'
bad=0
for library in "$@"; do
  symbols=$(nm --dynamic --defined-only --demangle --format=just-symbols "$library")
  stray=$(grep -vE "^$linker|^$prefix([^(]* )?$allowed" <<<"$symbols" || true)
  if [ -n "$stray" ]; then
    echo "symbols: $library defines these symbols outside of namespace batchrpc:"
    echo "$stray"
    bad=1
  fi
done
[ "$bad" = 0 ] && echo "symbols: none outside of namespace batchrpc"
exit "$bad"
